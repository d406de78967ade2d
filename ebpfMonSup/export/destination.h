/* SPDX-License-Identifier: BSD-3-Clause */
/* What files and servers have in common: what they took, what they lost, whether they work. */
#ifndef EBPFMON_DESTINATION_H
#define EBPFMON_DESTINATION_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char     name[256];
    uint64_t lines;     /* written */
    uint64_t lost;      /* in all */
    uint64_t lostNow;   /* since it last worked; while it is not 0 no line is taken, so that the line that tells of
                           the loss stands where it happened */
    int      trouble;
    char     why[256];  /* and what to do; kept when the trouble is over, for the line that tells of the loss */
    double   retryAt;   /* s, monotonic */
    double   backoff;
} ebpfMonDestination;

/* Logs when it begins, and when the reason changes. Tries again later and later, up to most seconds. */
void ebpfMonDestinationSetTrouble(ebpfMonDestination *o, double now, double most, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void ebpfMonDestinationSetWorking(ebpfMonDestination *o);
void ebpfMonDestinationAddLost(ebpfMonDestination *o, uint64_t lines);

/* Line feeds in the text. */
uint64_t ebpfMonLineCount(const char *text, size_t len);

#endif
