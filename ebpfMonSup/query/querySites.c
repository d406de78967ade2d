/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "query/queryCells.h"
#include "query/querySites.h"

struct ebpfMonQuerySites {
    const ebpfMonQuerySpec *spec;
    unsigned keySize;
    ebpfMonQueryCells cells; /* those of site 0 have what the other sites have together */
    char   **name; /* site number n is name[n - 1] */
    size_t   names, nameRoom;
    unsigned at;   /* byte of the key at which the number of its site is */
};

ebpfMonQuerySites *ebpfMonQuerySitesNew(const ebpfMonQuerySpec *spec, unsigned keySize)
{
    ebpfMonQuerySites *s = calloc(1, sizeof(*s));

    if (s) {
        s->spec = spec;
        s->keySize = keySize;
        for (unsigned i = 0; i < spec->order.plan.keys; i++)
            if (spec->order.plan.key[i].what == EBPFMON_QUERY_SITE)
                s->at = spec->order.plan.key[i].at;
    }
    return s;
}

void ebpfMonQuerySitesFree(ebpfMonQuerySites *s)
{
    if (!s)
        return;
    ebpfMonQueryCellsClear(&s->cells);
    for (size_t i = 0; i < s->names; i++)
        free(s->name[i]);
    free(s->name);
    free(s);
}

const char *ebpfMonQuerySitesGetName(const ebpfMonQuerySites *s, uint64_t number)
{
    return s && number && number <= s->names ? s->name[number - 1] : "-";
}

/* The number of a name; 0: no memory. There are no more names than keys. */
static uint64_t numberName(ebpfMonQuerySites *s, const char *name)
{
    char *copy;

    for (size_t i = 0; i < s->names; i++)
        if (strcmp(s->name[i], name) == 0)
            return i + 1;
    copy = strdup(name);
    if (!copy || ebpfMonArrayGrow(&s->name, &s->nameRoom, s->names + 1, 16, sizeof(*s->name))) {
        free(copy);
        return 0;
    }
    s->name[s->names++] = copy;
    return s->names;
}

/* Counts one event. Without a value in the plan its value is 0. */
static void addSiteEvent(const struct ebpfMonQueryPlan *plan, struct ebpfMonQueryCell *c, int64_t value, uint64_t at)
{
    if (plan->value.what == EBPFMON_QUERY_NOTHING)
        c->count++;
    else
        ebpfMonQueryCellAdd(plan, c, value, at);
}

int ebpfMonQuerySitesAdd(ebpfMonQuerySites *s, const uint64_t *key, const char *site, int64_t value, uint64_t at)
{
    const struct ebpfMonQueryPlan *plan = &s->spec->order.plan;
    uint8_t whole[EBPFMON_QUERY_KEY_SIZE] = { 0 };
    uint64_t number = numberName(s, site), none = 0;
    size_t most = 2 * (size_t)s->spec->order.maxKeys; /* with those of site 0 */
    ebpfMonQueryKeyCell *one, *all;

    memcpy(whole, key, s->keySize);
    memcpy(whole + s->at, &none, sizeof(none));
    all = ebpfMonQueryCellsGet(&s->cells, whole, most);
    memcpy(whole + s->at, &number, sizeof(number));
    one = number && all ? ebpfMonQueryCellsGet(&s->cells, whole, most) : NULL;
    if (!one)
        return -1;
    addSiteEvent(plan, &one->cell, value, at);
    addSiteEvent(plan, &all->cell, value, at);
    return 0;
}

static uint64_t getSite(const ebpfMonQuerySites *s, const ebpfMonQueryKeyCell *cell)
{
    uint64_t number;

    memcpy(&number, cell->key + s->at, sizeof(number));
    return number;
}

void ebpfMonQuerySitesRead(const ebpfMonQuerySites *s, ebpfMonQuerySitesAddCell add, void *arg)
{
    for (size_t i = 0; i < s->cells.count; i++)
        if (getSite(s, s->cells.cell[i]))
            add(arg, s->cells.cell[i]->key, &s->cells.cell[i]->cell);
}

void ebpfMonQuerySitesSubtract(const ebpfMonQuerySites *s, const uint8_t *key, struct ebpfMonQueryCell *cell)
{
    uint8_t whole[EBPFMON_QUERY_KEY_SIZE] = { 0 };
    const ebpfMonQueryKeyCell *known;

    memcpy(whole, key, s->keySize);
    known = ebpfMonQueryCellsFind(&s->cells, whole);
    if (!known)
        return;
    if (cell->count <= known->cell.count) { /* it was read before the last stacks came */
        memset(cell, 0, sizeof(*cell));
        return;
    }
    cell->count -= known->cell.count;
    cell->sum -= known->cell.sum;
    for (unsigned b = 0; s->spec->order.plan.hist && b < EBPFMON_QUERY_BUCKETS; b++)
        cell->hist[b] -= cell->hist[b] < known->cell.hist[b] ? cell->hist[b] : known->cell.hist[b];
}
