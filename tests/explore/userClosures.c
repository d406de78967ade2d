/* SPDX-License-Identifier: BSD-3-Clause */
/* Links, closures, stretches and the plan of passes. */
#include <string.h>

#include "userOwn.h"

uint8_t userIndexOf(const iocRecord *r)
{
    return r ? (uint8_t)(r - iocOne->record) : NONE;
}

void userReadLinks(unsigned i)
{
    user->flnk[i] = userIndexOf(iocOne->record[i].flnk);
    user->out[i] = userIndexOf(iocOne->record[i].out);
}

static int isIn(const uint8_t *list, uint32_t from, uint32_t to, uint8_t i)
{
    while (from < to && list[from] != i)
        from++;
    return from < to;
}

/* Appends all that a record reaches, itself first, and what is not there from "from" on. "isPass": a link processes a
 * passive record only. */
static void addReached(Closures *c, uint32_t from, unsigned i, int isPass)
{
    if (isIn(c->list, from, c->count, (uint8_t)i))
        return;
    c->list[c->count++] = (uint8_t)i;
    if (user->out[i] != NONE && !(isPass && iocOne->record[user->out[i]].scan))
        addReached(c, from, user->out[i], isPass);
    if (user->flnk[i] != NONE && !(isPass && iocOne->record[user->flnk[i]].scan))
        addReached(c, from, user->flnk[i], isPass);
}

static unsigned countCauses(uint8_t i)
{
    unsigned n = 0;

    for (unsigned k = 0; k < iocOne->count; k++)
        n += (user->flnk[k] == i) + (user->out[k] == i);
    return n;
}

/* closureTable.c, ebpfMonClosureTableMakeStretches(). "at": the first place of the order, "n": so many. */
static void findStretches(Closures *c, uint32_t at, uint32_t n, int isPass)
{
    for (uint32_t p = n; p-- > 0;) {
        uint8_t v = c->list[at + p], w = user->flnk[v];

        c->ahead[at + p] = 0;
        if (w != NONE && p + 1 < n && c->list[at + p + 1] == w && user->out[v] == NONE && countCauses(w) == 1 &&
            !(isPass && iocOne->record[w].scan))
            c->ahead[at + p] = (uint8_t)(c->ahead[at + p + 1] + 1);
    }
}

static uint8_t findHead(uint8_t *group, uint8_t i)
{
    while (group[i] != i)
        i = group[i];
    return i;
}

static void join(uint8_t *group, unsigned i, uint8_t to)
{
    if (to != NONE)
        group[findHead(group, to)] = findHead(group, (uint8_t)i);
}

/* sweeps.c */
static void makePlan(Closures *c)
{
    uint32_t swept = c->count, end;

    for (unsigned l = 0; l < iocOne->listCount; l++) {
        c->listFirst[l] = c->count;
        for (iocElement *e = iocOne->list[l].first; e; e = e->next)
            addReached(c, swept, userIndexOf(e->precord), 1);
        c->listLen[l] = c->count - c->listFirst[l];
    }
    end = c->count;
    findStretches(c, swept, end - swept, 1);
    for (unsigned i = 0; i < iocOne->count; i++)
        c->group[i] = (uint8_t)i;
    for (unsigned i = 0; i < iocOne->count; i++) {
        join(c->group, i, user->flnk[i]);
        join(c->group, i, user->out[i]);
        join(c->group, i, userIndexOf(iocOne->record[i].inp));
    }
    for (unsigned i = 0; i < iocOne->count; i++)
        c->group[i] = findHead(c->group, (uint8_t)i);
    for (unsigned i = 0; i < iocOne->count; i++) {
        c->groupFirst[i] = c->count; /* of a record that is no head: an empty one */
        for (uint32_t p = swept; p < end; p++)
            if (c->group[c->list[p]] == i)
                c->list[c->count++] = c->list[p];
        c->groupLen[i] = c->count - c->groupFirst[i];
    }
}

/* ioc/closure.c: an order of all, of which the closure of a record is a part; or it has a list of its own behind. */
void userMakeClosures(Closures *c, int withPlan)
{
    memset(c, 0, sizeof(*c));
    for (unsigned i = 0; i < iocOne->count; i++)
        if (!countCauses((uint8_t)i))
            addReached(c, 0, i, 0);
    findStretches(c, 0, c->count, 0);
    for (uint32_t p = 0; p < iocOne->count; p++) {
        uint32_t own = c->count, len;
        uint8_t i = c->list[p];

        addReached(c, own, i, 0);
        len = c->count - own;
        c->len[i] = len;
        c->first[i] = own;
        if (p + len <= iocOne->count && !memcmp(c->list + p, c->list + own, len)) {
            c->first[i] = p;
            c->count = own;
        }
    }
    if (withPlan)
        makePlan(c);
}
