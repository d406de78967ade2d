/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IOCs that are gone: what records they had, for the answer of why.h. The thread of subscriptions.c alone.
 */
#ifndef EBPFMON_GONEIOCS_H
#define EBPFMON_GONEIOCS_H

#include "ioc/catalogue.h"
#include "watch/target.h"

#define EBPFMON_GONE_IOCS 256

typedef struct {
    uint32_t iocId;
    char     name[EBPFMON_IOCNAME_SIZE];
    ebpfMonCatalogue *cat; /* one reference */
    int      isThere;
    uint64_t goneAt;       /* monotonic ns */
} ebpfMonKeptIoc;

typedef struct {
    ebpfMonKeptIoc ioc[EBPFMON_GONE_IOCS];
    unsigned count;
} ebpfMonGoneIocs;

/* Call it each second. Keeps the last catalogue of some IOCs that are gone, until one of the same name is there. */
void ebpfMonGoneIocsUpdate(ebpfMonGoneIocs *iocs, ebpfMonTargets *targets, uint64_t now);

/* "IOC x had it, and is gone since …". 0, or -1: none had it. */
int ebpfMonGoneIocsFind(const ebpfMonGoneIocs *iocs, const char *record, char *text, size_t size);

#endif
