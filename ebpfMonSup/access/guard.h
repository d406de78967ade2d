/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guards the monitor's own PVs. A client may write to them only if its user or its host is an operator (operators.h).
 * The kernel says which user that is; the name that the client claims does not count.
 *
 * The access security file lets everybody write values in the group EBPFMON, because a CA client that is told "no
 * write access" sends no put, and then there is nothing to log. So what is written reaches the record. But the record's
 * device support applies a value only if the guard accepts it: servers make a put in the thread of its client, which
 * processes the record; any other value comes from inside (shell, links, autosave, other threads) and is accepted. The
 * guard sets a refused value back while the record is still locked, so nobody reads it. Exception: a client of PVA that
 * wants no processing (process=false). Its value, refused or not, can be read until the put ends, and is not applied.
 *
 * The configuration of the records, and the group EBPFMON_RO, are guarded by access security alone: nobody may write.
 * If the file grants more, or has not the groups, no value is accepted until it is corrected.
 *
 * One guard per process, because Base calls it without a context.
 */
#ifndef EBPFMON_GUARD_H
#define EBPFMON_GUARD_H

#include <epicsTime.h>
#include <stdint.h>
#include "access/client.h"
#include "access/operators.h"

/* --- records that control the monitor; for their device support ---
 *
 * All of these: the caller holds the lock of the record. */

struct dbCommon;

/* Call it in init_record. 0, or a status for Base. */
long ebpfMonGuardAdd(struct dbCommon *prec);

/* Call it first in the function that writes. Nonzero: apply the value. 0: VAL, the alarm and TIME are those of
 * before; set other fields back that follow from VAL, apply nothing, and return EBPFMON_GUARD_REFUSED, so that the
 * client is told. */
int ebpfMonGuardAccepts(struct dbCommon *prec);
#define EBPFMON_GUARD_REFUSED S_db_noMod

/* A value from inside, which the record has without processing, is accepted. Sets its time. */
void ebpfMonGuardKeep(struct dbCommon *prec);

/* Call it before a value is read by another way. Nonzero: it was not accepted, and was set back. */
int ebpfMonGuardSetBack(struct dbCommon *prec);

/* --- puts ---
 *
 * Notes the puts of clients to guarded records, because the monitor logs all of them. The servers' threads note the
 * puts; the monitor's event thread takes the notes. */

typedef struct {
    epicsTimeStamp time;
    uint64_t at;            /* the same in monotonic ns */
    char     pv[80];        /* RECORD.FIELD; plain RECORD for VAL */
    char     channel[128];  /* as the client wrote it */
    char     user[64], host[64]; /* as the client claims */
    ebpfMonAccessClient client;
    int      isAllowed;
    char     why[64];       /* why it is not allowed; else empty */
    /* the value that the client sent, as it is in the server's memory. Not known for PVA */
    int      type;          /* DBR_STRING 0 … DBR_DOUBLE 6, -1: not known */
    long     count;
    uint32_t have;          /* bytes of the value in "data" */
    uint8_t  data[512];
    /* the field before and after, as text; hasOld 0, hasAfter 0: it could not be read */
    char     old[512], after[512];
    int      hasOld, hasAfter;
} ebpfMonGuardedPut;

/* Calls noted(arg) whenever a note is complete, in the server's thread and under the lock of this module. So "noted"
 * must not wait, and must not call this module. NULL: no call. Any thread. */
void ebpfMonGuardedPutsSetSink(void (*noted)(void *arg), void *arg);

/* Takes out the oldest complete note. Nonzero: *put is set. 0: there is none. One thread. */
int ebpfMonGuardedPutsTake(ebpfMonGuardedPut *put);

/* The number of puts since the last call that were judged, but not noted, because there was no room. Any thread. */
unsigned ebpfMonGuardedPutsTakeLost(void);

/* --- the guard --- */

/* Registers the functions that Base calls. Call this once, before a server starts. Reads no database. */
void ebpfMonGuardInit(void);

/* Guards the records of the database. Call this after access security was initialised (initHookAfterScanInit), and
 * before the servers run. From now on the operators cannot be changed. */
void ebpfMonGuardStart(void);

/* Forgets the records. Call this after the database was freed (initHookAfterShutdown). In tests another database
 * follows. */
void ebpfMonGuardStop(void);

/* Nonzero: this PV of this process (RECORD or RECORD.FIELD) is guarded. Any thread, after iocInit. */
int ebpfMonGuardHasPv(const char *name);

/* Prints to stdout who may write, and why nobody may, if so. "level" above 0: also how many records it guards. */
void ebpfMonGuardReport(int level);

#endif
