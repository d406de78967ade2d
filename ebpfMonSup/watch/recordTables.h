/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records of the watched IOCs in the kernel part's tables: each record gets a slot, its closure, and an entry in
 * the index by address. Only the follower uses this module. It writes the members of a target that other threads read
 * under the lock of the targets.
 */
#ifndef EBPFMON_RECORDTABLES_H
#define EBPFMON_RECORDTABLES_H

#include "ioc/recordLinks.h"
#include "model/audits.h"
#include "watch/recordTablesKernel.h"
#include "watch/target.h"

typedef struct ebpfMonRecordTables ebpfMonRecordTables;

/* Room for as many records and closures as kernel->tables->size says. NULL without memory. */
ebpfMonRecordTables *ebpfMonRecordTablesNew(ebpfMonTargets *targets, ebpfMonAudits *audits,
                                            const ebpfMonRecordTablesKernel *kernel);
void ebpfMonRecordTablesFree(ebpfMonRecordTables *tables); /* NULL does no harm */

/* Adds all records of an IOC whose iocInit is done: links, slots, closures, index. 0, or -1 with the reason in its
 * note. */
int  ebpfMonRecordTablesAdd(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Makes room for chains of records that were no roots so far. Once a second, and before records are watched. */
void ebpfMonRecordTablesReserve(ebpfMonRecordTables *tables);

/* Adds the places of the elements of its array fields. Call it while the IOC starts, because autosave writes arrays
 * then. */
void ebpfMonRecordTablesAddArrays(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/*
 * Reads the links of record "index" again; if they changed, makes new closures. Counts go on.
 *
 * What a new link makes process is not counted until the closures have it, and a link may come and go before it is read
 * once. So these are marked, whether they processed or not:
 * - the record to which the put leads the link (ebpfMonTargetNoteUnseen), and all that this record reaches;
 * - if the links have changed, all that the record reached before, and all that it reaches now.
 * So each record that was not counted is marked: the last link on the way to it that the closures did not have was put,
 * and the links behind that one were there, or have changed since.
 *
 * None of these is counted here: a chain that is under way may have processed them, and counts them at its end. If
 * their time stamps were noted before that, this chain would take the records of a stretch for counted, because their
 * last record was; and its trace would not have them.
 *
 * "index" EBPFMON_ALL_RECORDS: it is not known whose links changed. If any did, all records are marked.
 */
void ebpfMonRecordTablesUpdateLinks(ebpfMonRecordTables *tables, ebpfMonTarget *t, uint32_t index);

/* The trap of recGblFwdLink was attached or detached: from now on the records that need it are counted in the other
 * way. "isFirst": nothing has been counted without the trap; in this case call it before the trap is attached. */
void ebpfMonRecordTablesSetTrap(ebpfMonRecordTables *tables, ebpfMonTarget *t, int attached, int isFirst);

/* If a trial has shown that the snapshot counts a record type rightly (typeTrial.h), the snapshot counts its records
 * from now on, and not the trap: this changes one record after the other, while no chain processes it. Once a second
 * until none is left. */
void ebpfMonRecordTablesReleaseTrap(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Follows device supports that fall asleep and wake (typeTrial.h). Once a second; "trapOn": the trap is attached. */
void ebpfMonRecordTablesFollowSleep(ebpfMonRecordTables *tables, ebpfMonTarget *t, int trapOn, uint64_t now);

/* All counts are lower bounds from now on, because its records process in a way that the monitor cannot follow. */
void ebpfMonRecordTablesMarkMissed(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* The same of the records that processed since then (ns since 1970), and of all that these reach. Returns the number of
 * counts that were exact. */
uint32_t ebpfMonRecordTablesMarkSince(ebpfMonRecordTables *tables, ebpfMonTarget *t, uint64_t realNs);

/* Notes which records match the filter's pattern. */
void ebpfMonRecordTablesSetShown(ebpfMonRecordTables *tables, ebpfMonTarget *t, const char *pattern);

/* Passes are watched from now on instead of chains, as soon as the probes are attached. 0, or -1: its records do not
 * allow it, or chains cost less. */
int  ebpfMonRecordTablesBeginSweeps(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Reads the scan lists and links again. */
void ebpfMonRecordTablesRenewSweeps(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* On the way from passes back to chains, while both are watched. Nonzero: no processing is left that only the end of a
 * pass would show. After a while the records that still have one are marked. */
int  ebpfMonRecordTablesSettleSweeps(ebpfMonRecordTables *tables, ebpfMonTarget *t, uint64_t now);

/* The probes for passes are detached, and the kernel part was told so. */
void ebpfMonRecordTablesEndSweeps(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Follows records that moved to other scan lists. Once a second while passes are watched. Nonzero: the caller applies
 * the level again. */
int  ebpfMonRecordTablesFollowSweeps(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Counting begins now, after a time in which the probes were off: what the IOC processed meanwhile is not counted.
 * "wasInterrupted": they were counted before, so the records that processed meanwhile are marked. */
void ebpfMonRecordTablesBeginCounting(ebpfMonRecordTables *tables, ebpfMonTarget *t, int wasInterrupted);

/* The probes are attached. After an interruption, marks the records that processed since then: the kernel part may not
 * have seen it. Looks again at asynchronous records that were busy then: they may have completed unseen. */
void ebpfMonRecordTablesSettleCounting(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Removes its records, array fields and scan lists from the tables by pid and address, once: before another program
 * gets this pid. */
void ebpfMonRecordTablesRemoveIndex(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Removes it from all tables. */
void ebpfMonRecordTablesRemove(ebpfMonRecordTables *tables, ebpfMonTarget *t);

#endif
