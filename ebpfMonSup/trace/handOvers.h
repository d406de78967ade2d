/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand-overs of chains to other threads: callbacks, and records for scanOnce. The kernel part sends two kinds of
 * events. The first comes just before each chain to which a hand-over led, and tells the source chain. The second comes
 * when the thread has completed the hand-over; it can come before the event of the source chain. It has the number of
 * chains that the hand-over led to, so it shows if one of them did not arrive. Event thread only.
 */
#ifndef EBPFMON_HANDOVERS_H
#define EBPFMON_HANDOVERS_H

#include "ebpfMonEvent.h"
#include "model/put.h"

typedef struct ebpfMonHandOvers ebpfMonHandOvers;

ebpfMonHandOvers *ebpfMonHandOversNew(void); /* NULL without memory */
void ebpfMonHandOversFree(ebpfMonHandOvers *handOvers); /* NULL does no harm */

/* The thread of "ev" works on a hand-over; its chain comes next. */
void ebpfMonHandOversNoteBegin(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev);

/* The hand-over that led to this chain. NULL: none is known. Valid until the next call of …NoteBegin. */
const struct ebpfMonHandOver *ebpfMonHandOversFind(const ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain);

/* This chain arrived, and a hand-over led to it. */
void ebpfMonHandOversCountChain(ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain);

/* The thread of "ev" has completed its hand-over. Nonzero: not all chains of this hand-over have arrived. */
int ebpfMonHandOversNoteEnd(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev);

/* One hand-over of this source chain was completed, and the event of the source chain has not come yet. "isPartial":
 * not all chains of this hand-over have arrived. */
void ebpfMonHandOversNoteEarlyEnd(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int isPartial);

/* Returns how many such hand-overs there were, and forgets them. Called when the event of the source chain comes.
 * *isPartial: one of them was partial. */
uint32_t ebpfMonHandOversTakeEarlyEnds(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int *isPartial);

#endif
