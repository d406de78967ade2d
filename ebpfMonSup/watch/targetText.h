/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of an IOC, the text of its release, and why nothing is seen inside. Only the follower uses this module, but
 * for ebpfMonTargetTextTellApart. */
#ifndef EBPFMON_TARGETTEXT_H
#define EBPFMON_TARGETTEXT_H

#include <stddef.h>
#include <stdint.h>
#include "watch/target.h"

/* Finds the name of an IOC that is not among the targets yet. If another living IOC has this name, the new one gets its
 * pid behind it. */
void ebpfMonTargetTextFindName(ebpfMonTargets *targets, ebpfMonTarget *t);

/* Any process can claim the name of an IOC by its environment. Puts "#PID" behind the name of this process, which is
 * none of the targets, if a target that lives has it. Takes the lock of the targets. Any thread. */
void ebpfMonTargetTextTellApart(ebpfMonTargets *targets, pid_t pid, char name[EBPFMON_IOCNAME_SIZE]);

/* Reads the text of the release from the memory of the IOC. Takes the lock of the targets. */
void ebpfMonTargetTextReadVersion(ebpfMonTargets *targets, ebpfMonTarget *t);

/* Why nothing is seen inside an IOC with this nameless program. "isRecognised": that of the machine that we run on. */
void ebpfMonTargetTextWriteNameless(const ebpfMonBinary *core, int isRecognised, char note[EBPFMON_NOTE_SIZE]);

/* --- recordName ---
 *
 * Finds the name of a record by its address.
 */

/* "precord": the record's address in the memory of the IOC. Nonzero: "name" is set. 0: the catalogue has no such
 * record, or "target" is NULL; "name" is empty. The caller holds the targets lock. */
int ebpfMonRecordNameFind(const ebpfMonTarget *target, uint64_t precord, char *name, size_t size);

#endif
