/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guards the monitor's own PVs. A client may write to them only if its user or its host is an operator (operators.h).
 * The kernel says which user that is; the name that the client claims does not count.
 *
 * The guarded records are all records of this process in the access security groups EBPFMON and EBPFMON_RO. A put from
 * inside the process (shell, links, autosave, other threads) does not go through a server, and is not judged.
 *
 * A put is refused before it reaches the record:
 * - CA: asTrapWrite calls our listener (guardedPuts.h) in the thread of the connection. The listener makes the channel
 *   of this client read-only. Then dbPut returns S_db_noMod, and the client gets ECA_PUTFAIL. The CA server gives every
 *   client write access, because a client library that is told "no write access" sends no put, and then there is
 *   nothing to log.
 * - PVA: the channels of the connection get no write access (addClient.h). The client gets "Put not permitted".
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

#include "access/judge.h"

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
