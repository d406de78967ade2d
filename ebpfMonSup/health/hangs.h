/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the hangs of this second with those of the second before: which threads began to hang, and which hang no
 * more. Publishing thread only. */
#ifndef EBPFMON_HANGS_H
#define EBPFMON_HANGS_H

#include <stdint.h>
#include <epicsTime.h>
#include "health/lives.h"
#include "model/healthValues.h"

#define EBPFMON_HANGS_MAX 64

/* A thread that holds a lock set, or is in one callback, for too long. */
typedef struct {
    uint32_t id, tid;  /* the number of its IOC, and its thread id */
    uint64_t begin;    /* monotonic ns; tid and begin identify the hang */
    double   since;    /* how long it hangs (s) */
    char     now[EBPFMON_HEALTH_NAME]; /* the record that the thread works on now; it may be another one than the
                                        * root of its chain. Empty: not known */
    char     who[240]; /* "IOC x (pid 1): thread scan-1 (tid 2) in record R, at S"; "… in a callback" */
    char     what[480];/* "sleeping in futex (futex_wait_queue), at a < b" */
} ebpfMonHang;

typedef struct ebpfMonHangs ebpfMonHangs;

ebpfMonHangs *ebpfMonHangsNew(void); /* NULL without memory */
void ebpfMonHangsFree(ebpfMonHangs *hangs);

/* "now": the hangs of this second; "at": the time for events. Adds events to "health", and sets health->hangs. Call
 * this after ebpfMonLivesUpdate, because the hangs of an IOC that has ended make no event. */
void ebpfMonHangsUpdate(ebpfMonHangs *hangs, const ebpfMonHang *now, unsigned n, const ebpfMonLives *lives,
                        const epicsTimeStamp *at, ebpfMonHealth *health);

#endif
