/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the records processed between the write of a link and the moment when the closures have it. A part of
 * recordTables, which alone uses it. The follower's.
 *
 * Records that the changed record reaches only now may have processed since the link was written: once, as far as
 * their time stamps tell, so their count is a lower bound from then on (EBPFMON_MISSED). So is that of one which
 * another chain has counted since: it may have processed before, and its time stamp shows that no more. Only these are
 * looked at: what was reached before is counted at the end of the chain that may be under way now.
 *
 * What a link made process that was changed again before it was read is marked in the same way, and not counted: which
 * of these records is in the course of a chain that will count it is not known.
 */
#ifndef EBPFMON_LINKCHANGE_H
#define EBPFMON_LINKCHANGE_H

#include "ioc/closure.h"
#include "watch/linkPuts.h"
#include "watch/target.h"

typedef struct ebpfMonLinkChange ebpfMonLinkChange;

/* "c": the new closures, before they are put in force; "since": the link was not written before (monotonic ns),
 * UINT64_MAX: no such put is known. NULL without memory. */
ebpfMonLinkChange *ebpfMonLinkChangeNew(const ebpfMonTables *tables, const ebpfMonTarget *t, const ebpfMonClosures *c,
                                        uint32_t index, uint64_t since);
void ebpfMonLinkChangeFree(ebpfMonLinkChange *change); /* NULL does no harm */

/* Counts what these records have processed since they were looked at last. NULL does nothing. */
void ebpfMonLinkChangeCatchUp(ebpfMonLinkChange *change, ebpfMonTargets *targets, ebpfMonTarget *t);

/* A superseded put: the record may have made its target process from then on, and whatever that reaches by the links of
 * the catalogue and by "edges"; or it processed without a time stamp itself. Marks those that may have. */
void ebpfMonLinkChangeMarkSuperseded(const ebpfMonTables *tables, ebpfMonTargets *targets, ebpfMonTarget *t,
                                     const ebpfMonLinkPut *put, const ebpfMonLinkEdge *edges, unsigned edgeCount);

#endif
