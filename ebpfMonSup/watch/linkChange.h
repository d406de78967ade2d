/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the records processed between the write of a link and the moment when the closures have it. A part of
 * recordTables, which alone uses it. The follower's.
 *
 * Records that the changed record reaches only now may have processed since the link was written: once, as far as their
 * time stamps tell, so their count is a lower bound from then on (EBPFMON_MISSED). Only these are looked at: what was reached before is counted at the end of the chain that may be
 * under way now.
 */
#ifndef EBPFMON_LINKCHANGE_H
#define EBPFMON_LINKCHANGE_H

#include "ioc/closure.h"
#include "watch/target.h"

typedef struct ebpfMonLinkChange ebpfMonLinkChange;

/* "c": the new closures, before they are put in force. NULL without memory. */
ebpfMonLinkChange *ebpfMonLinkChangeNew(const ebpfMonTables *tables, const ebpfMonTarget *t, const ebpfMonClosures *c,
                                        uint32_t index);
void ebpfMonLinkChangeFree(ebpfMonLinkChange *change); /* NULL does no harm */

/* Counts what these records have processed since they were looked at last. NULL does nothing. */
void ebpfMonLinkChangeCatchUp(ebpfMonLinkChange *change, ebpfMonTargets *targets, ebpfMonTarget *t);

#endif
