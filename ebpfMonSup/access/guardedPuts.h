/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judges the puts of clients to guarded records, and notes each put, because the monitor logs all of them. The servers'
 * threads note the puts; the monitor's event thread takes the notes.
 *
 * If a put of a CA client is refused, its channel becomes read-only. The dbAddr in the channel belongs to this channel
 * alone, because rsrv makes a dbChannel for each channel. It gets a copy of its field description with two changes:
 * - dbPut calls a special() that refuses before anything is written, also if another thread makes the put of a
 *   put-callback.
 * - No put to the field processes the record. dbProcessNotify would process it even after dbPut has failed
 *   (db_put_process).
 *
 * All else is as before, so the client can go on reading. The channel stays read-only, because the owner of a
 * connection does not change.
 *
 * The special SPC_NOMOD would be simpler. But then rsrvCheckPut refuses the next put before it calls asTrapWrite, and
 * the monitor does not log this put.
 */
#ifndef EBPFMON_GUARDEDPUTS_H
#define EBPFMON_GUARDEDPUTS_H

#include <stdint.h>
#include <epicsTime.h>
#include "access/client.h"

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

/* Registers the listener of asTrapWrite. Call this once, before a server starts. */
void ebpfMonGuardedPutsInit(void);

/* Calls noted(arg) whenever a note is complete, in the server's thread and under the lock of this module. So "noted"
 * must not wait, and must not call this module. NULL: no call. Any thread. */
void ebpfMonGuardedPutsSetSink(void (*noted)(void *arg), void *arg);

/* Takes out the oldest complete note. Nonzero: *put is set. 0: there is none. One thread. */
int ebpfMonGuardedPutsTake(ebpfMonGuardedPut *put);

/* The number of puts since the last call that were judged, but not noted, because there was no room. Any thread. */
unsigned ebpfMonGuardedPutsTakeLost(void);

#endif
