/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides when the chains of an IOC's scan lists are timed: in turns, one in ten seconds on average, or fewer if they
 * would be very short; and all of them for a while after a pass that may have had a slow chain. This module knows no
 * IOC and no clock. No lock: only the follower uses it.
 *
 * The pauses between turns are random, because lists are scanned at fixed periods: with turns at fixed times, a list of
 * ten seconds would be in a turn always or never.
 */
#ifndef EBPFMON_TURNS_H
#define EBPFMON_TURNS_H

#include <stdint.h>

typedef struct {
    int      isOpen;     /* chains are timed now */
    double   percent;    /* of the time, as asked for last */
    uint64_t openAt, closeAt; /* ns; begin and end of the present turn, or of the next one */
    uint64_t demandUntil; /* all chains are timed until then */
    uint64_t demand;     /* ns for which all chains were timed after the last slow pass; 0: there was none for a long
                          * time */
    uint64_t slow;       /* slow passes at the last look */
    uint64_t lookedAt;
    double   timed, all; /* s, of the last minutes */
    double   timedEver;  /* s, since it began */
    uint64_t random;
} ebpfMonTurns;

#define EBPFMON_TURNS_NO_DEMAND UINT64_MAX

/* The first turn begins at once. A turn also begins at once when "percent" changes. "seed": any number. */
void ebpfMonTurnsBegin(ebpfMonTurns *turns, uint64_t now, uint64_t seed);

/* Decides "isOpen" for now. "percent": of the time; "slow": number of passes so far that may have had a slow chain,
 * EBPFMON_TURNS_NO_DEMAND: slow passes do not matter. Nonzero: "isOpen" changed. */
int ebpfMonTurnsLook(ebpfMonTurns *turns, uint64_t now, double percent, uint64_t slow);

/* Seconds from "now" to the next change that can be foreseen. */
double ebpfMonTurnsWait(const ebpfMonTurns *turns, uint64_t now);

/* Percent of the last minutes in which chains were timed. */
double ebpfMonTurnsShare(const ebpfMonTurns *turns);

/* Seconds in which chains were timed, from Begin to "now". */
double ebpfMonTurnsTimed(const ebpfMonTurns *turns, uint64_t now);

/* Percent of the time in which chains are timed at present: 100 for a while after a slow pass. */
double ebpfMonTurnsExpect(const ebpfMonTurns *turns, uint64_t now);

#endif
