/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures whether the periodic scan threads of all IOCs keep their periods. Publishing thread only. */
#ifndef EBPFMON_SCANTHREADS_H
#define EBPFMON_SCANTHREADS_H

#include <stdint.h>
#include <sys/types.h>
#include "ebpfMonTable.h"
#include "model/published.h"
#include "watch/target.h"

/* --- the mean period ---
 *
 * Computes the mean period of one scan thread over the last seconds, from the counts of the kernel part. No shared
 * state; the structs are the caller's.
 */

#define EBPFMON_SCAN_SECONDS 10 /* the mean is taken over this time */

/* The counts of one thread since the kernel part first saw it; times in ns. The members are those of struct ebpfMonScan
 * (ebpfMonTable.h). */
typedef struct {
    uint64_t passes, sum, max, busy, late;
} ebpfMonScanSample;

/* The samples of the last seconds, a ring. All 0: there is none yet. */
typedef struct {
    ebpfMonScanSample at[EBPFMON_SCAN_SECONDS + 1];
    unsigned n, newest;
} ebpfMonScanWindow;

/* Call this once a second. Sets row->period, worst (s), late (a count) and busy (percent). If no pass ended in the
 * window, the mean stays as it is. "present": the time since the present period began (ns); it counts if it is
 * longer. 0: ignore it. */
void ebpfMonScanWindowAdd(ebpfMonScanWindow *window, const ebpfMonScanSample *now, uint64_t present,
                          ebpfMonScanRow *row);

/* The period (s) of a choice of menuScan (".1 second", "10 Hz"), by the rules of initPeriodic in dbScan.c; 0: it has no
 * period. */
double ebpfMonScanParsePeriod(const char *choice);

/* --- threads --- */

typedef struct ebpfMonScanThreads ebpfMonScanThreads;

/* The IOC of a scan thread. The caller owns the name. */
typedef struct {
    uint32_t id;
    pid_t    pid;
    uint16_t spvt;      /* the offset of this field in its records; 0: not known */
    uint64_t scanMenu;  /* the address of menuScan in its memory (struct dbMenu); 0: not known */
    const char *name;
    int      isStill;   /* it stands still, which is told by itself */
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
