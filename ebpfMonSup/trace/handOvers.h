/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What chains hand over to other threads: callbacks, and records for scanOnce. Two events come from the kernel part. One
 * comes just before each chain that a hand-over led to, and tells its source chain. The other one comes when a thread is
 * done with what it was handed; it can come before the event of the source chain. It says how many chains there were, so
 * it shows if one of them did not arrive. Event thread only.
 */
#ifndef EBPFMON_HANDOVERS_H
#define EBPFMON_HANDOVERS_H

#include "ebpfMonEvent.h"
#include "model/chainId.h"

typedef struct ebpfMonHandOvers ebpfMonHandOvers;

ebpfMonHandOvers *ebpfMonHandOversNew(void); /* NULL without memory */
void ebpfMonHandOversFree(ebpfMonHandOvers *handOvers); /* NULL does no harm */

/* The thread of "ev" works on something that was handed over; its chain comes next. */
void ebpfMonHandOversNoteBegin(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev);

/* What led to this chain. NULL: no hand-over that is known. Valid until the next call of …NoteBegin. */
const struct ebpfMonHandOver *ebpfMonHandOversFind(const ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain);

/* This chain arrived, and a hand-over led to it. */
void ebpfMonHandOversCountChain(ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain);

/* The thread of "ev" is done with what it was handed. Nonzero: not all chains that came of it have arrived. */
int ebpfMonHandOversNoteEnd(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev);

/* One hand-over of this source chain is done, and the event of the source chain has not come yet. "isPartial": not all
 * chains that came of it have arrived. */
void ebpfMonHandOversNoteEarlyEnd(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int isPartial);

/* How many there were, and forgets them: the source chain asks when its event comes. *isPartial: one of them was. */
uint32_t ebpfMonHandOversTakeEarlyEnds(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int *isPartial);

#endif
