/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the periodic scan threads of all IOCs keep their periods. Publishing thread only. */
#ifndef EBPFMON_SCANTHREADS_H
#define EBPFMON_SCANTHREADS_H

#include <sys/types.h>
#include "ebpfMonTable.h"
#include "model/healthValues.h"
#include "watch/target.h"

typedef struct ebpfMonScanThreads ebpfMonScanThreads;

/* The IOC of a scan thread. */
typedef struct {
    uint32_t id;
    pid_t    pid;
    uint64_t scanMenu;  /* address of its menuScan (struct dbMenu), 0: not known */
    const char *name;
} ebpfMonScanIoc;

ebpfMonScanThreads *ebpfMonScanThreadsNew(void); /* NULL without memory */
void ebpfMonScanThreadsFree(ebpfMonScanThreads *scans);

/* Once a second: Begin, then Add for each thread that the kernel part has seen, then Publish. */
void ebpfMonScanThreadsBegin(ebpfMonScanThreads *scans);
/* "now": monotonic ns. Reads the IOC's memory when the thread is new: call it without locks. */
void ebpfMonScanThreadsAdd(ebpfMonScanThreads *scans, const ebpfMonScanIoc *ioc, uint32_t tid,
                           const struct ebpfMonThread *seen, uint64_t now);
/* Sets the scan rows of "health", by IOC, the fastest first. Takes the targets lock, for names. */
void ebpfMonScanThreadsPublish(ebpfMonScanThreads *scans, ebpfMonTargets *targets, ebpfMonHealth *health);

#endif
