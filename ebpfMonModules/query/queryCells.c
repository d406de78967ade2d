/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/array.h"
#include "query/queryCells.h"

/* --- cells --- */

void ebpfMonQueryCellsClear(ebpfMonQueryCells *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->cell[i]);
    free(c->cell);
    memset(c, 0, sizeof(*c));
}

/* As ebpfMonQueryCellsFind. If there is none, *place is the index that it would have. */
static ebpfMonQueryKeyCell *findCell(const ebpfMonQueryCells *c, const uint8_t *key, size_t *place)
{
    size_t low = 0, high = c->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(c->cell[middle]->key, key, sizeof(c->cell[0]->key));

        if (!order)
            return c->cell[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *place = low;
    return NULL;
}

ebpfMonQueryKeyCell *ebpfMonQueryCellsFind(const ebpfMonQueryCells *c, const uint8_t *key)
{
    size_t place;

    return findCell(c, key, &place);
}

ebpfMonQueryKeyCell *ebpfMonQueryCellsGet(ebpfMonQueryCells *c, const uint8_t *key, size_t most)
{
    size_t place = 0;
    ebpfMonQueryKeyCell *cell = findCell(c, key, &place);

    if (cell || c->count >= most)
        return cell;
    cell = calloc(1, sizeof(*cell));
    if (!cell || ebpfMonArrayGrow(&c->cell, &c->room, c->count + 1, 16, sizeof(*c->cell))) {
        free(cell);
        return NULL;
    }
    memcpy(cell->key, key, sizeof(cell->key));
    memmove(&c->cell[place + 1], &c->cell[place], (c->count - place) * sizeof(*c->cell));
    c->cell[place] = cell;
    c->count++;
    return cell;
}

int ebpfMonQueryCellMayWrap(const struct ebpfMonQueryCell *cell, uint64_t events)
{
    double high = (double)(int64_t)EBPFMON_QUERY_ORDER(cell->high);
    double low = (double)(int64_t)EBPFMON_QUERY_ORDER(~cell->low);

    return cell->high && cell->low && fmax(fabs(high), fabs(low)) * (double)events >= 0x1p63;
}

/* The bucket of a value in the histogram. This and ebpfMonQueryCellAdd() as addValue() of query/queryLook.bpf.h. */
static uint32_t findBucket(const struct ebpfMonQueryPlan *plan, int64_t value)
{
    uint64_t n;

    if (plan->hist == EBPFMON_QUERY_LOG2)
        return ebpfMonQueryBucket(value);
    if (value < plan->from)
        return 0;
    n = (uint64_t)(value - plan->from) / (uint64_t)plan->step;
    return n < plan->steps ? (uint32_t)n + 1 : plan->steps + 1;
}

void ebpfMonQueryCellAdd(const struct ebpfMonQueryPlan *plan, struct ebpfMonQueryCell *c, int64_t value, uint64_t at)
{
    uint64_t order = EBPFMON_QUERY_ORDER(value);

    c->count++;
    c->sum += (uint64_t)value;
    if (order > c->high)
        c->high = order;
    if (~order > c->low)
        c->low = ~order;
    c->last = value;
    c->lastAt = at;
    if (plan->hist != EBPFMON_QUERY_NO_HIST)
        c->hist[findBucket(plan, value)]++;
}

/* --- puts --- */

struct ebpfMonQueryPuts {
    const ebpfMonQuerySpec *spec;
    unsigned keySize;
    ebpfMonQueryCells cells; /* by key without the number of the put: what the puts had that are over */
    uint8_t *over;           /* keys of puts that are over, and still in the kernel part */
    size_t   overCount, overRoom;
    uint64_t now, lost;
};

ebpfMonQueryPuts *ebpfMonQueryPutsNew(const ebpfMonQuerySpec *spec, unsigned keySize)
{
    ebpfMonQueryPuts *p = calloc(1, sizeof(*p));

    if (p) {
        p->spec = spec;
        p->keySize = keySize;
    }
    return p;
}

void ebpfMonQueryPutsFree(ebpfMonQueryPuts *p)
{
    if (!p)
        return;
    ebpfMonQueryCellsClear(&p->cells);
    free(p->over);
    free(p);
}

unsigned ebpfMonQueryPutsGetKeySize(const ebpfMonQueryPuts *p)
{
    return p->keySize - (unsigned)sizeof(uint64_t);
}

uint64_t ebpfMonQueryPutsGetLost(const ebpfMonQueryPuts *p)
{
    return p->lost;
}

/* A table must not change while it is read, so the keys are noted first. A put that is not noted for want of memory is
 * at the next look. */
static void noteOver(void *arg, const uint8_t *key, const struct ebpfMonQueryCell *cell)
{
    ebpfMonQueryPuts *p = arg;

    if (!cell->lastAt || cell->lastAt + (uint64_t)(p->spec->settle * 1e9) > p->now ||
        ebpfMonArrayGrow(&p->over, &p->overRoom, p->overCount + 1, 32, p->keySize))
        return;
    memcpy(p->over + p->overCount++ * p->keySize, key, p->keySize);
}

static void addPut(ebpfMonQueryPuts *p, const uint8_t *key, const struct ebpfMonQueryCell *put)
{
    uint8_t whole[EBPFMON_QUERY_KEY_SIZE] = { 0 };
    ebpfMonQueryKeyCell *cell;

    if (p->spec->perPut == ebpfMonQueryPutSum && ebpfMonQueryCellMayWrap(put, put->count)) {
        p->lost += put->count;
        return;
    }
    memcpy(whole, key, ebpfMonQueryPutsGetKeySize(p));
    cell = ebpfMonQueryCellsGet(&p->cells, whole, p->spec->order.maxKeys);
    if (cell)
        ebpfMonQueryCellAdd(&p->spec->order.plan, &cell->cell,
                            (int64_t)(p->spec->perPut == ebpfMonQueryPutSum ? put->sum : put->count), put->lastAt);
    else
        p->lost += put->count;
}

int ebpfMonQueryPutsLook(ebpfMonQueryPuts *p, ebpfMonQueryPrograms *programs, uint64_t now, ebpfMonQueryCellFn each,
                         void *arg)
{
    struct ebpfMonQueryCell put;
    int status;

    p->now = now;
    p->overCount = 0;
    status = ebpfMonQueryProgramsReadCells(programs, noteOver, p);
    for (size_t i = 0; i < p->overCount; i++)
        if (ebpfMonQueryProgramsTakeCell(programs, p->over + i * p->keySize, &put) == 0)
            addPut(p, p->over + i * p->keySize, &put);
    for (size_t i = 0; i < p->cells.count; i++)
        each(arg, p->cells.cell[i]->key, &p->cells.cell[i]->cell);
    return status;
}

/* --- sites --- */

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
