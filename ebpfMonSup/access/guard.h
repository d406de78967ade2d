/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guards the monitor's own PVs. A client may write to them only if its user or its host is an operator (operators.h).
 * The kernel says which user that is; the name that the client claims does not count.
 *
 * The guarded records are all records of this process in the access security groups EBPFMON and EBPFMON_RO. A put from
 * inside the process (shell, links, autosave, other threads) does not go through a server, and is not judged.
 *
 * A put is refused before it reaches the record:
 * - CA: asTrapWrite calls our listener in the thread of the connection. The listener makes the channel
 *   of this client read-only. Then dbPut returns S_db_noMod, and the client gets ECA_PUTFAIL. The CA server gives every
 *   client write access, because a client library that is told "no write access" sends no put, and then there is
 *   nothing to log.
 * - PVA: the channels of the connection get no write access. The client gets "Put not permitted".
 *
 * The access security file (asSetFilename) can refuse more clients, but cannot allow any that is refused here. Whatever
 * the file says, in both groups a rule that grants WRITE grants it at level 0 only, that is, for values, and all writes
 * are trapped. Without a file, access security begins with both groups, and refuses nothing else. If the file lacks
 * these groups, clients cannot write to the records (DISP).
 *
 * One guard per process, because Base calls it without a context.
 */
#ifndef EBPFMON_GUARD_H
#define EBPFMON_GUARD_H

#include <asLib.h>
#include <epicsTime.h>
#include <stdint.h>
#include "access/client.h"
#include "access/operators.h"

/* --- puts ---
 *
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
 * before the servers run. From now on the operators cannot be changed. If a record cannot be guarded, clients cannot
 * write to it, and the error log says why. */
void ebpfMonGuardStart(void);

/* Forgets the records. Call this after the database was freed (initHookAfterShutdown). In tests another database
 * follows. */
void ebpfMonGuardStop(void);

/* Nonzero: this PV of this process (RECORD or RECORD.FIELD) is guarded. Any thread, after iocInit. */
int ebpfMonGuardHasPv(const char *name);

/* Prints to stdout who may write, and why records are closed, if any are. "level" above 0: also how many are
 * guarded. */
void ebpfMonGuardReport(int level);

#endif
