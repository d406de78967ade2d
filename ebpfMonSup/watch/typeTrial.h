/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds out, for record types and device supports that are not of EPICS Base, whether the time stamp of a record shows
 * each processing. Device support matters for records that are I/O Intr: a driver may set the time stamp before it
 * requests the scan. Nobody can know this before. So at first both the trap and the snapshot count these records. When
 * both have counted the same often enough, only the snapshot goes on, and the trap is detached. Now and then the trap
 * is attached for some seconds, and both are compared again. A type for which they differ is counted by the trap from
 * then on. So are the records behind a type that completes without its lock set, as swait does: another thread may
 * process there at the same time, and no thread looks.
 *
 * Most drivers never request a scan, and nothing is to be compared. A device support whose records have not processed
 * for a while falls asleep: they do not ask for the trap any more, so the passes of the IOC can be watched. As long as
 * the snapshot sees nothing of them, their counts are exact. What it sees then may be a processing or only a new time
 * stamp: nothing is counted, the record is marked, the trap is attached, and the trial goes on. Each time that a device
 * support wakes, it must be quiet twice as long as before.
 *
 * One trial for an IOC. The follower's alone.
 */
#ifndef EBPFMON_TYPETRIAL_H
#define EBPFMON_TYPETRIAL_H

#include <stdint.h>

#include "model/audits.h"
#include "watch/target.h"

#define EBPFMON_TRIAL_ENOUGH   20   /* processings of a type that it is judged by */
#define EBPFMON_TRIAL_EVERY_NS (600 * EBPFMON_SECOND_NS)
#define EBPFMON_TRIAL_CHECK_NS (5 * EBPFMON_SECOND_NS)
#define EBPFMON_TRIAL_QUIET_NS (60 * EBPFMON_SECOND_NS) /* so long nothing of a device support processes that falls
                                                         * asleep */

typedef struct ebpfMonTypeTrial ebpfMonTypeTrial;

#define EBPFMON_DEVSUPS_MAX 254 /* of one type; those of asyn are some 10 */

/* Notes in the catalogue which types are unknown, and reads the names of device supports ("mem" NULL: it does not).
 * Before the links are read (ioc/recordLinks.h). */
void ebpfMonTypeTrialSetTypes(ebpfMonCatalogue *cat, ebpfMonMem *mem);

/* A byte for each record: EBPFMON_STAMPS_UNLOCKED or EBPFMON_STAMPS_UNKNOWN: a record of such a type makes it process;
 * else 0. NULL without memory. */
uint8_t *ebpfMonTypeTrialFindBehind(const ebpfMonCatalogue *cat);

/* NULL: all its records are of Base's types, or there is no memory: then the unknown ones stay with the trap. "audits"
 * count the types that were taken for good ones and are not; they stay the caller's. */
ebpfMonTypeTrial *ebpfMonTypeTrialNew(const ebpfMonCatalogue *cat, ebpfMonAudits *audits);
void ebpfMonTypeTrialFree(ebpfMonTypeTrial *trial); /* NULL does no harm */

/* Both counters begin now. "standStill": neither probe is attached yet, so no chain is under way that only one of them
 * counts. NULL does nothing. */
void ebpfMonTypeTrialBegin(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, int standStill);

/* The trap is wanted for a comparison. */
int ebpfMonTypeTrialWantsTrap(const ebpfMonTypeTrial *trial);

typedef enum {
    ebpfMonTrialNothing,
    ebpfMonTrialProbes, /* another probe is wanted than before */
    ebpfMonTrialLinks   /* a type was judged: the flags of its records are to be read again */
} ebpfMonTrialResult;

/* Compares; once a second. "now": monotonic ns. */
ebpfMonTrialResult ebpfMonTypeTrialLook(ebpfMonTypeTrial *trial, ebpfMonTarget *t, int trapOn, uint64_t now);

/* Processings of this record may not have been counted, because links have changed: its comparison begins anew. */
void ebpfMonTypeTrialExcuse(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, uint32_t index);

/* Nonzero: the record is one of those that are tried. */
int ebpfMonTypeTrialHas(const ebpfMonTypeTrial *trial, uint32_t index);

/* Finds device supports that fall asleep or wake, and marks (EBPFMON_MISSED) the records that processed unseen. Once a
 * second, before Look, under the lock of the targets. Nonzero: there was one, so other records want the trap than
 * before. */
int ebpfMonTypeTrialFollowSleep(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, int trapOn, uint64_t now);

/* Nonzero: both have counted the same for this record since the comparison began, so at this moment the record may
 * change from one counter to the other. GetAhead: by how much the counter of the trap is larger. */
int ebpfMonTypeTrialAgrees(const ebpfMonTypeTrial *trial, const ebpfMonTarget *t, uint32_t index);
int64_t ebpfMonTypeTrialGetAhead(const ebpfMonTypeTrial *trial, uint32_t index);

#endif
