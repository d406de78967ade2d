/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a file, a log server and a collector have in common: what they accepted, what they lost, if they work, and when
 * to try again. One thread. Times are monotonic seconds.
 */
#ifndef EBPFMON_DESTINATION_H
#define EBPFMON_DESTINATION_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char     name[256];
    uint64_t lines;     /* lines that were written */
    uint64_t lost;      /* lines that were lost, in all */
    uint64_t lostNow;   /* lines that were lost since it last worked. While this is not 0, it accepts no line, so
                         * that the line that reports the loss stands in the place of the lost lines */
    int      trouble;
    char     why[256];  /* what is wrong, and what to do; it stays when the trouble has ended, for the line that
                         * reports the loss */
    double   retryAt;   /* time of the next try */
    double   backoff;   /* s; between the last two tries */
} ebpfMonDestination;

/* Notes trouble. Logs a message when it begins, and when its reason changes. With each call, the time to the next try
 * doubles, from 1 s to "most" seconds. */
void ebpfMonDestinationSetTrouble(ebpfMonDestination *destination, double now, double most, const char *format, ...)
    __attribute__((format(__printf__, 4, 5)));

/* Notes that it works. Logs a message if it was in trouble. */
void ebpfMonDestinationSetWorking(ebpfMonDestination *destination);

/* Counts lost lines. */
void ebpfMonDestinationAddLost(ebpfMonDestination *destination, uint64_t lines);

/* Counts the line feeds in the text. */
uint64_t ebpfMonDestinationCountLines(const char *text, size_t len);

#endif
