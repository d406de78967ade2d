/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "wire/circuitShares.h"

static void joinShare(ebpfMonSharedCircuit *c, ebpfMonCircuitShare *s)
{
    c->share = s;
    c->newer = NULL;
    c->older = s->newest;
    if (s->newest)
        s->newest->newer = c;
    s->newest = c;
    s->count++;
}

static void leaveShare(ebpfMonSharedCircuit *c)
{
    *(c->newer ? &c->newer->older : &c->share->newest) = c->older;
    if (c->older)
        c->older->newer = c->newer;
    c->share->count--;
    c->share = NULL;
}

/* NULL: no memory. */
static ebpfMonCircuitShare *getShare(ebpfMonCircuitShares *all, const ebpfMonWirePayer *payer)
{
    ebpfMonCircuitShare *s = all->first;

    while (s && (s->payer.id != payer->id || s->payer.isSystem != payer->isSystem ||
                 s->payer.isNobody != payer->isNobody))
        s = s->next;
    if (s)
        return s;
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->payer = *payer;
    s->next = all->first;
    all->first = s;
    return s;
}

/* Asks who pays for the circuits that were opened since the last time. */
static void shareNew(ebpfMonCircuitShares *all)
{
    ebpfMonSharedCircuit *c = all->unshared.newest, *newer;

    while (c && c->older)
        c = c->older;
    for (; c; c = newer) {
        ebpfMonWirePayer payer = { .id = 0 };
        ebpfMonCircuitShare *s;

        newer = c->newer;
        if (all->findPayer)
            payer = all->findPayer(all->arg, c->peer, &c->first);
        s = getShare(all, &payer);
        if (!s)
            continue;
        leaveShare(c);
        joinShare(c, s);
    }
}

void ebpfMonCircuitSharesAdd(ebpfMonCircuitShares *all, ebpfMonSharedCircuit *c)
{
    joinShare(c, &all->unshared);
}

void ebpfMonCircuitSharesRemove(ebpfMonSharedCircuit *c)
{
    if (c->share)
        leaveShare(c);
}

static void freeEmpty(ebpfMonCircuitShares *all)
{
    ebpfMonCircuitShare *s;

    for (ebpfMonCircuitShare **at = &all->first; (s = *at) != NULL;)
        if (s->count) {
            at = &s->next;
        } else {
            *at = s->next;
            free(s);
        }
}

/* Nonzero: "a" must give up one of its circuits before "b". */
static int isBefore(const ebpfMonCircuitShare *a, const ebpfMonCircuitShare *b)
{
    if (a->payer.isNobody != b->payer.isNobody)
        return a->payer.isNobody;
    return a->payer.isSystem != b->payer.isSystem ? !a->payer.isSystem : a->count > b->count;
}

ebpfMonSharedCircuit *ebpfMonCircuitSharesFindVictim(ebpfMonCircuitShares *all)
{
    const ebpfMonCircuitShare *most = NULL;

    freeEmpty(all);
    shareNew(all);
    for (const ebpfMonCircuitShare *s = all->first; s; s = s->next)
        if (!most || isBefore(s, most))
            most = s;
    return most ? most->newest : all->unshared.newest;
}

void ebpfMonCircuitSharesFree(ebpfMonCircuitShares *all)
{
    freeEmpty(all);
}
