/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks what may have processed unseen between the put to a link and the moment when the closures have the new link.
 * Only recordTables uses this module, in the follower's thread.
 *
 * Records that the changed record reaches only by the new link may have processed since the put. The next chain that
 * reaches them counts one processing of them at most, so their count is a lower bound from then on (EBPFMON_MISSED).
 * The same holds for a record that another chain has counted since the put: it may have processed before that, and its
 * time stamp does not show this any more. Only these records are looked at. Records that were reached before, too, are
 * counted at the end of the chain that may be under way now.
 *
 * Superseded puts: records that a link made process, before it was changed again and before it was read, are marked in
 * the same way.
 *
 * None of them is counted here: a chain that is under way may have processed them, and counts them at its end. If their
 * time stamps were noted before that, this chain would take the records of a stretch for counted, because their last
 * record was; and its trace would not have them.
 */
#ifndef EBPFMON_LINKCHANGE_H
#define EBPFMON_LINKCHANGE_H

#include "ioc/closure.h"
#include "watch/linkPuts.h"
#include "watch/target.h"

typedef struct ebpfMonLinkChange ebpfMonLinkChange;

/* "c": the new closures, before they are put in force; "since": the link was not put before this time (monotonic ns),
 * UINT64_MAX: no such put is known. NULL without memory. */
ebpfMonLinkChange *ebpfMonLinkChangeNew(const ebpfMonTables *tables, const ebpfMonTarget *t, const ebpfMonClosures *c,
                                        uint32_t index, uint64_t since);
void ebpfMonLinkChangeFree(ebpfMonLinkChange *change); /* NULL does no harm */

/* Marks those of these records that may have processed unseen. Call it before the new closures are in force, and again
 * when they are. NULL does nothing. */
void ebpfMonLinkChangeMark(const ebpfMonLinkChange *change, ebpfMonTargets *targets, ebpfMonTarget *t);

/* A superseded put: from then on the record may have made the link's target process, and all records that the target
 * reaches by the links of the catalogue and by "edges"; or the record itself may have processed without a time stamp.
 * Marks the records that may have processed. */
void ebpfMonLinkChangeMarkSuperseded(const ebpfMonTables *tables, ebpfMonTargets *targets, ebpfMonTarget *t,
                                     const ebpfMonLinkPut *put, const ebpfMonLinkEdge *edges, unsigned edgeCount);

#endif
