/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which open circuit ends if there are too many: each client has a share (common/shares.h has the rule). Who pays for a
 * circuit is asked when one must end, not before. For the thread of the wire.
 */
#ifndef EBPFMON_CIRCUITSHARES_H
#define EBPFMON_CIRCUITSHARES_H

#include "wire/wireEvent.h"

typedef struct ebpfMonCircuitShare ebpfMonCircuitShare;

/* The part of a circuit that this module uses. */
typedef struct ebpfMonSharedCircuit {
    struct ebpfMonSharedCircuit *older, *newer; /* in the order in which they were opened, of one who pays */
    ebpfMonCircuitShare *share;                 /* NULL: it is not open */
    const struct ebpfMonPeer *peer;
    struct ebpfMonFirst first;
    void    *circuit;
} ebpfMonSharedCircuit;

/* The open circuits of one who pays. */
struct ebpfMonCircuitShare {
    ebpfMonCircuitShare *next;
    ebpfMonWirePayer payer;
    unsigned count;
    ebpfMonSharedCircuit *newest;
};

/* All of it, zeros at first. */
typedef struct {
    ebpfMonCircuitShare *first, unshared; /* unshared: who pays was not asked yet */
    ebpfMonWireFindPayer findPayer;       /* NULL: one pays for all */
    void    *arg;
} ebpfMonCircuitShares;

/* A circuit is open now; it is not any more. */
void ebpfMonCircuitSharesAdd(ebpfMonCircuitShares *shares, ebpfMonSharedCircuit *c);
void ebpfMonCircuitSharesRemove(ebpfMonSharedCircuit *c);

/* The circuit that must end to make room: of those that are nobody's, or else of who has most, the
 * one that was opened last. NULL: none is open. */
ebpfMonSharedCircuit *ebpfMonCircuitSharesFindVictim(ebpfMonCircuitShares *shares);

/* When no circuit is open any more. */
void ebpfMonCircuitSharesFree(ebpfMonCircuitShares *shares);

#endif
