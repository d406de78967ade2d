/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts of clients to guarded records: judged when they come, and noted, so that the monitor logs each. The servers'
 * threads note them; the monitor's event thread takes them out.
 *
 * A client of CA that is refused has its channel made read-only. The dbAddr in the channel belongs to this channel
 * alone (rsrv makes a dbChannel for each), and gets another description of its field. Through it dbPut finds a
 * special() that refuses before anything is written, in whichever thread a put-callback is made; and dbProcessNotify,
 * which would process the record even after dbPut has failed (db_put_process), finds a field that no put processes.
 * All else is as before, so the client can go on reading. The channel stays so, because the owner of a connection
 * does not change.
 *
 * (Special SPC_NOMOD would be simpler. But then rsrvCheckPut refuses the next put before it asks us, and it is not
 * logged.)
 */
#ifndef EBPFMON_GUARDEDPUTS_H
#define EBPFMON_GUARDEDPUTS_H

#include <stdint.h>
#include <epicsTime.h>
#include "access/client.h"

typedef struct {
    epicsTimeStamp time;
    char     pv[80];        /* RECORD.FIELD; plain RECORD for VAL */
    char     channel[128];  /* as the client wrote it */
    char     user[64], host[64]; /* as the client claims */
    ebpfMonAccessClient client;
    int      isAllowed;
    char     why[64];       /* not allowed: why */
    /* what was sent: as the server has it in memory. PVA does not tell */
    int      type;          /* DBR_STRING 0 … DBR_DOUBLE 6, -1: not known */
    long     count;
    uint32_t have;          /* bytes of it in "data" */
    uint8_t  data[512];
    /* the field before and after, as text; hasOld 0, hasAfter 0: it could not be read */
    char     old[512], after[512];
    int      hasOld, hasAfter;
} ebpfMonGuardedPut;

/* Registers the listener. Once. */
void ebpfMonGuardedPutsInit(void);

/* "noted" is called whenever one is complete, by the server's thread and under the lock, so it must not wait and not call
 * this module. NULL: nobody is told. Any thread. */
void ebpfMonGuardedPutsSetSink(void (*noted)(void *arg), void *arg);

/* Copies the oldest that is noted and complete. Nonzero: there was one. One thread. */
int ebpfMonGuardedPutsTake(ebpfMonGuardedPut *put);

/* Puts that were judged but not noted, for lack of room, since the last call. */
unsigned ebpfMonGuardedPutsTakeLost(void);

#endif
