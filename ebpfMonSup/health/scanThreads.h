/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures whether the periodic scan threads of all IOCs keep their periods. Publishing thread only. */
#ifndef EBPFMON_SCANTHREADS_H
#define EBPFMON_SCANTHREADS_H

#include <sys/types.h>
#include "ebpfMonTable.h"
#include "model/healthValues.h"
#include "watch/target.h"

typedef struct ebpfMonScanThreads ebpfMonScanThreads;

/* The IOC of a scan thread. The caller owns the name. */
typedef struct {
    uint32_t id;
    pid_t    pid;
    uint16_t spvt;      /* the offset of this field in its records; 0: not known */
    uint64_t scanMenu;  /* the address of menuScan in its memory (struct dbMenu); 0: not known */
    const char *name;
} ebpfMonScanIoc;

ebpfMonScanThreads *ebpfMonScanThreadsNew(void); /* NULL without memory */
void ebpfMonScanThreadsFree(ebpfMonScanThreads *scans);

/* Call once a second: Begin, then Add for each thread that the kernel part has seen, then Publish. */
void ebpfMonScanThreadsBegin(ebpfMonScanThreads *scans);
/* "now": monotonic ns. The caller holds no lock: for a new thread this function reads the IOC's memory. A thread beyond
 * EBPFMON_HEALTH_SCANS is ignored. */
void ebpfMonScanThreadsAdd(ebpfMonScanThreads *scans, const ebpfMonScanIoc *ioc, uint32_t tid,
                           const struct ebpfMonThread *seen, uint64_t now);
/* Sets the scan rows of "health": by IOC, and in an IOC the fastest thread first. Takes the targets lock to look up
 * names. */
void ebpfMonScanThreadsPublish(ebpfMonScanThreads *scans, ebpfMonTargets *targets, ebpfMonHealth *health);

/* Nonzero: at the last look some thread should have begun its pass and had not: it may be late at the next look. */
int ebpfMonScanThreadsAreWaiting(const ebpfMonScanThreads *scans);

#endif
