/* SPDX-License-Identifier: BSD-3-Clause */
/* The operator's choice: what is watched, how closely, and what of it is shown. */
#ifndef EBPFMON_FILTER_H
#define EBPFMON_FILTER_H

#include <stddef.h>
#include "model/level.h"

#define EBPFMON_PATTERN_SIZE 61

/* Patterns are those of epicsStrGlobMatch: ? and *. */
typedef struct {
    char ioc[EBPFMON_PATTERN_SIZE];
    char record[EBPFMON_PATTERN_SIZE];
    char field[EBPFMON_PATTERN_SIZE];
    char host[EBPFMON_PATTERN_SIZE];
    char user[EBPFMON_PATTERN_SIZE];
    ebpfMonLevel level;   /* for the IOCs that match; the others are off */
    double   slowUs;      /* a chain that takes this long is kept whole; 0: none */
    unsigned sample;      /* level trace: one chain in this many is kept */
    double   timed;       /* level chains: chains of scan lists are timed in so many percent of the time, where their
                           * records can be counted without */
    double   budget;      /* CPU taken from each IOC, percent of one core; 0: no limit */
} ebpfMonFilter;

/* Everything, at level chains, chains over 10 ms kept, every chain, timed in 5 % of the time, 1 %. */
extern const ebpfMonFilter ebpfMonFilterDefault;

/* 0, or -1 with the reason and what to do in "why". Empty patterns are set to "*". */
int ebpfMonPatternCheck(char pattern[EBPFMON_PATTERN_SIZE], const char *what, char *why, size_t size);
int ebpfMonFilterCheck(ebpfMonFilter *filter, char *why, size_t size);

/* One line for the operator, without end of line. */
void ebpfMonFilterFormat(const ebpfMonFilter *filter, char *buf, size_t size);

int ebpfMonFilterWantsPut(const ebpfMonFilter *filter, const char *record, const char *field,
                          const char *host, const char *user);

#endif
