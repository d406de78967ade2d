/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guards the monitor's own PVs: a client may write to them if it is an operator by its real user or its address
 * (operators.h), whatever name it claims.
 *
 * Guarded are all records of this process whose access security group is EBPFMON or EBPFMON_RO. A put from inside
 * (shell, links, autosave, other threads) passes no server, and is not judged.
 *
 * How a put is refused, before it reaches the record:
 * - CA: a listener of asTrapWrite (guardedPuts.h) is called in the thread of the connection. It makes the client's own
 *   channel read-only, so dbPut returns S_db_noMod and the client gets ECA_PUTFAIL. The server lets everybody come so
 *   far, because a client library that is told "no write access" sends nothing, and there would be nothing to log.
 * - PVA: the channels of a connection get no write access (addClient.h); the client gets "Put not permitted".
 *
 * The access security file is the second fence. It cannot open the first: in both groups a rule that grants WRITE
 * grants values only (level 0), and all writes are trapped, whatever the file says. Without such a file
 * (asSetFilename), access security begins with both groups and nothing else to refuse. If a file lacks these groups,
 * the records are closed (DISP).
 *
 * One per process, for Base calls it without a context.
 */
#ifndef EBPFMON_GUARD_H
#define EBPFMON_GUARD_H

#include <stddef.h>
#include "access/client.h"
#include "access/operators.h"

#define EBPFMON_ASG    "EBPFMON"
#define EBPFMON_ASG_RO "EBPFMON_RO"

/* Once, before any server: registers what Base calls. Reads no database. */
void ebpfMonGuardInit(void);

/* After access security was initialised (initHookAfterScanInit), before the servers run: from now on the operators are
 * fixed. */
void ebpfMonGuardStart(void);

/* After the database is gone (initHookAfterShutdown): another one may come, in tests. */
void ebpfMonGuardStop(void);

/* The operators, to be changed before ebpfMonGuardStart; NULL after it. The shell's thread. */
ebpfMonOperators *ebpfMonGuardSetOperators(void);
const ebpfMonOperators *ebpfMonGuardGetOperators(void);

/* Nonzero: the client may write. 0: *why is a literal that says why not. Any thread. */
int ebpfMonGuardAllows(const ebpfMonAccessClient *client, const char **why);

/* Whether a group is one of those two. */
int ebpfMonGuardHasGroup(const char *asg);

/* Whether a PV of this process (RECORD or RECORD.FIELD) is guarded. Any thread, after iocInit. */
int ebpfMonGuardHasPv(const char *name);

/* Prints to stdout who may write, and what is closed. */
void ebpfMonGuardReport(int level);

#endif
