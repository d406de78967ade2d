/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the chains of an IOC's scan lists are timed, if not always: in turns, one in ten seconds on average; and all of them
 * for a while after a pass that may have had a slow chain. The decision alone: it knows no IOC and no clock. Not locked: the
 * follower's.
 *
 * The pauses between turns are random, because lists are scanned at fixed periods: one of ten seconds would always, or never,
 * fall into a turn at a fixed time.
 */
#ifndef EBPFMON_TURNS_H
#define EBPFMON_TURNS_H

#include <stdint.h>

typedef struct {
    int      isOpen;     /* chains are timed now */
    double   percent;    /* of the time, as asked for last */
    uint64_t openAt, closeAt; /* ns; the turn under way, or the next */
    uint64_t demandUntil; /* all are timed until then */
    uint64_t demand;     /* ns that the last slow pass was good for; 0: none since long */
    uint64_t slow;       /* slow passes at the last look */
    uint64_t lookedAt;
    double   timed, all; /* s, of the last minutes */
    double   timedEver;  /* s, since it began */
    uint64_t random;
} ebpfMonTurns;

#define EBPFMON_TURNS_NO_DEMAND UINT64_MAX

/* The first turn begins at once, and so it does when another part of the time is asked for. "seed": any number. */
void ebpfMonTurnsBegin(ebpfMonTurns *turns, uint64_t now, uint64_t seed);

/* Decides "isOpen" for now. "percent": of the time; "slow": how many passes there were that may have had a slow chain,
 * EBPFMON_TURNS_NO_DEMAND: it does not matter.
 * Nonzero: it changed. */
int ebpfMonTurnsLook(ebpfMonTurns *turns, uint64_t now, double percent, uint64_t slow);

/* Seconds from "now" to the next change that can be foreseen. */
double ebpfMonTurnsWait(const ebpfMonTurns *turns, uint64_t now);

/* Percent of the last minutes in which chains were timed. */
double ebpfMonTurnsShare(const ebpfMonTurns *turns);

/* Seconds until "now" in which chains were timed, since it began. */
double ebpfMonTurnsTimed(const ebpfMonTurns *turns, uint64_t now);

/* Percent of the time in which they are, as it is now: all of it after a slow pass. */
double ebpfMonTurnsExpect(const ebpfMonTurns *turns, uint64_t now);

#endif
