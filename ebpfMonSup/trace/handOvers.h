/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What chains hand over to other threads: callbacks, and records for scanOnce. The kernel tells where a chain comes from
 * just before that chain, and when what was handed over is done. Event thread only.
 */
#ifndef EBPFMON_HANDOVERS_H
#define EBPFMON_HANDOVERS_H

#include "ebpfMonEvent.h"
#include "model/put.h"

void ebpfMonHandOversBegin(const struct ebpfMonHandOverEvent *ev);

/* Where this chain comes from; NULL: of nowhere that is known. Valid until the next event. */
const struct ebpfMonHandOver *ebpfMonHandOversFind(const struct ebpfMonChain *chain);

/* Something that this chain handed over was done, before the chain was told of. */
void ebpfMonHandOversEndEarly(const ebpfMonChainId *chain);
/* How often that was; asked once for each chain. */
uint32_t ebpfMonHandOversTakeEnded(const ebpfMonChainId *chain);

#endif
