/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a file, a log server and a collector have in common: what they took, what they lost, whether they work, and when
 * to try again. One thread. Times in seconds, monotonic.
 */
#ifndef EBPFMON_DESTINATION_H
#define EBPFMON_DESTINATION_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char     name[256];
    uint64_t lines;     /* written */
    uint64_t lost;      /* in all */
    uint64_t lostNow;   /* since it last worked. While it is not 0 no line is taken, so that the line that reports the
                           loss stands where the lost lines would stand */
    int      trouble;
    char     why[256];  /* what is wrong, and what to do; kept when the trouble is over, for the line that reports
                           the loss */
    double   retryAt;   /* not before */
    double   backoff;   /* between the last two tries */
} ebpfMonDestination;

/* Logs a message when trouble begins, and when its reason changes. The time to the next try doubles with each call,
 * from 1 to at most "most" seconds. */
void ebpfMonDestinationSetTrouble(ebpfMonDestination *destination, double now, double most, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* It has just worked. Logs a message when it was in trouble. */
void ebpfMonDestinationSetWorking(ebpfMonDestination *destination);

void ebpfMonDestinationAddLost(ebpfMonDestination *destination, uint64_t lines);

/* Line feeds in the text. */
uint64_t ebpfMonDestinationCountLines(const char *text, size_t len);

#endif
