/* SPDX-License-Identifier: BSD-3-Clause */
/* Which threads began to hang and which hang no more, from a list of those that hang each second. Publishing thread
 * only. */
#ifndef EBPFMON_HANGS_H
#define EBPFMON_HANGS_H

#include <stdint.h>
#include <epicsTime.h>
#include "health/lives.h"
#include "model/healthValues.h"

#define EBPFMON_HANGS_MAX 64

/* A thread that holds a lock set, or is in one callback, for too long. */
typedef struct {
    uint32_t id, tid;  /* of its IOC, and its own */
    uint64_t begin;    /* ns; with tid its identity */
    double   since;    /* s */
    char     now[EBPFMON_HEALTH_NAME]; /* the record that it works on, of those that the chain's root has processed;
                                          empty: not known */
    char     who[240]; /* "IOC x (pid 1): thread scan-1 (tid 2) in record R, at S"; "… in a callback" */
    char     what[480];/* "sleeping in futex (futex_wait_queue), at a < b" */
} ebpfMonHang;

typedef struct ebpfMonHangs ebpfMonHangs;

ebpfMonHangs *ebpfMonHangsNew(void); /* NULL without memory */
void ebpfMonHangsFree(ebpfMonHangs *hangs);

/* Compares with the last time; "health" gets events and hangs. To be called after ebpfMonLivesUpdate: when an IOC
 * ended, its hangs end without an event. */
void ebpfMonHangsUpdate(ebpfMonHangs *hangs, const ebpfMonHang *now, unsigned n, const ebpfMonLives *lives,
                        const epicsTimeStamp *at, ebpfMonHealth *health);

#endif
