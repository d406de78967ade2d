/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter, which is the operator's choice: which IOCs are watched, how closely, and what is shown. Any thread. */
#ifndef EBPFMON_FILTER_H
#define EBPFMON_FILTER_H

#include <stddef.h>

/* --- levels ---
 *
 * How closely an IOC is watched. Each level includes those before it; FILTER_LEVEL has the same order.
 */

typedef enum {
    ebpfMonLevelOff,
    ebpfMonLevelPuts,   /* every put */
    ebpfMonLevelCounts, /* and the processings of every record */
    ebpfMonLevelChains, /* and the latency and lock wait of every chain; slow chains are kept whole */
    ebpfMonLevelTrace,  /* and every chain (or one in N) is kept whole */
    ebpfMonLevelCount
} ebpfMonLevel;

#define EBPFMON_LEVEL_RULES_MAX 64 /* levels and reference counts that commands can set at a time */

/* The name of a level, "?" if it does not exist. Any thread. */
const char *ebpfMonLevelName(ebpfMonLevel level);

/* The level with this name; upper and lower case are the same. -1: there is none. */
int ebpfMonLevelParse(const char *name);

/* --- the filter --- */

#define EBPFMON_PATTERN_SIZE 61

/* Patterns are those of epicsStrGlobMatch(): ? and *. */
typedef struct {
    char ioc[EBPFMON_PATTERN_SIZE];
    char record[EBPFMON_PATTERN_SIZE];
    char field[EBPFMON_PATTERN_SIZE];
    char host[EBPFMON_PATTERN_SIZE];
    char user[EBPFMON_PATTERN_SIZE];
    ebpfMonLevel level;   /* level of the IOCs that match; the others are off */
    double   slowUs;      /* µs; a chain that takes so long is kept whole; 0: none is */
    unsigned sample;      /* level trace: one chain in so many is kept */
    double   timed;       /* level chains: percent of the time in which the chains of scan lists are timed, if their
                           * records can be counted without that */
    double   budget;      /* percent of one core that may be taken from each IOC; 0: no limit */
} ebpfMonFilter;

/* Shows everything: level chains, chains of 10 ms and more are kept, every chain, timed in 5 % of the time, budget 1
 * %. */
extern const ebpfMonFilter ebpfMonFilterDefault;

/* Check a pattern, or a filter. 0; or -1, and "why" gets the reason and what to do. Empty patterns become "*". "what":
 * the name of the pattern in the reason. */
int ebpfMonFilterCheck(ebpfMonFilter *filter, char *why, size_t size);
/* Copies and checks a pattern of any length, for example one that a user typed. 0, or -1 as above. */
int ebpfMonPatternRead(char pattern[EBPFMON_PATTERN_SIZE], const char *given, const char *what, char *why, size_t size);

/* Nonzero: the pattern matches the name of an IOC, with or without the "#PID" that the second IOC of a name gets behind
 * it (watch/target.h). What is asked for the name is asked for both: otherwise who starts a program with the name
 * of an IOC could make the true one unwatched, or free of rules, when it is restarted. */
int ebpfMonPatternMatchesIoc(const char *pattern, const char *ioc);

/* Writes the filter in one line for the operator, without an end of line. */
void ebpfMonFilterFormat(const ebpfMonFilter *filter, char *buf, size_t size);

/* Nonzero: the filter shows a put to this field by this client. */
int ebpfMonFilterWantsPut(const ebpfMonFilter *filter, const char *record, const char *field,
                          const char *host, const char *user);

#endif
