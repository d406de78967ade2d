/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "query/querySites.h"

typedef struct {
    uint8_t key[EBPFMON_QUERY_KEY_SIZE];
    struct ebpfMonQueryCell cell;
} Cell;

struct ebpfMonQuerySites {
    const ebpfMonQuerySpec *spec;
    unsigned keySize;
    Cell   **cell; /* sorted by key. Those of site 0 have what the other sites have together */
    size_t   cells, room;
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
    for (size_t i = 0; i < s->cells; i++)
        free(s->cell[i]);
    for (size_t i = 0; i < s->names; i++)
        free(s->name[i]);
    free(s->cell);
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

/* Finds the cell of a key. NULL: there is none; then *place is the index that it would have. */
static Cell *findCell(const ebpfMonQuerySites *s, const uint8_t *key, size_t *place)
{
    size_t low = 0, high = s->cells;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(s->cell[middle]->key, key, sizeof(s->cell[0]->key));

        if (!order)
            return s->cell[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *place = low;
    return NULL;
}

static Cell *addSiteCell(ebpfMonQuerySites *s, const uint8_t *key, size_t place)
{
    Cell *cell = calloc(1, sizeof(*cell));

    if (!cell || ebpfMonArrayGrow(&s->cell, &s->room, s->cells + 1, 16, sizeof(*s->cell))) {
        free(cell);
        return NULL;
    }
    memcpy(cell->key, key, sizeof(cell->key));
    memmove(&s->cell[place + 1], &s->cell[place], (s->cells - place) * sizeof(*s->cell));
    s->cell[place] = cell;
    s->cells++;
    return cell;
}

/* The bucket of a value in the histogram. This and addSiteValue() as addSiteValue() of bpf/queryLook.bpf.h. */
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

static void addSiteValue(const struct ebpfMonQueryPlan *plan, struct ebpfMonQueryCell *c, int64_t value, uint64_t at)
{
    uint64_t order = EBPFMON_QUERY_ORDER(value);

    c->count++;
    if (plan->value.what == EBPFMON_QUERY_NOTHING)
        return;
    c->sum += value;
    if (order > c->high)
        c->high = order;
    if (~order > c->low)
        c->low = ~order;
    c->last = value;
    c->lastAt = at;
    if (plan->hist != EBPFMON_QUERY_NO_HIST)
        c->hist[findBucket(plan, value)]++;
}

/* The cell of a key, made if there is none. NULL: there is no room. */
static Cell *getCell(ebpfMonQuerySites *s, const uint8_t *key)
{
    size_t place = 0;
    Cell *cell = findCell(s, key, &place);

    if (!cell && s->cells < 2 * (size_t)s->spec->order.maxKeys) /* with those of site 0 */
        cell = addSiteCell(s, key, place);
    return cell;
}

int ebpfMonQuerySitesAdd(ebpfMonQuerySites *s, const uint64_t *key, const char *site, int64_t value, uint64_t at)
{
    const struct ebpfMonQueryPlan *plan = &s->spec->order.plan;
    uint8_t whole[EBPFMON_QUERY_KEY_SIZE] = { 0 };
    uint64_t number = numberName(s, site), none = 0;
    Cell *one, *all;

    memcpy(whole, key, s->keySize);
    memcpy(whole + s->at, &none, sizeof(none));
    all = getCell(s, whole);
    memcpy(whole + s->at, &number, sizeof(number));
    one = number && all ? getCell(s, whole) : NULL;
    if (!one)
        return -1;
    addSiteValue(plan, &one->cell, value, at);
    addSiteValue(plan, &all->cell, value, at);
    return 0;
}

static uint64_t getSite(const ebpfMonQuerySites *s, const Cell *cell)
{
    uint64_t number;

    memcpy(&number, cell->key + s->at, sizeof(number));
    return number;
}

void ebpfMonQuerySitesRead(const ebpfMonQuerySites *s, ebpfMonQuerySitesAddCell add, void *arg)
{
    for (size_t i = 0; i < s->cells; i++)
        if (getSite(s, s->cell[i]))
            add(arg, s->cell[i]->key, &s->cell[i]->cell);
}

void ebpfMonQuerySitesSubtract(const ebpfMonQuerySites *s, const uint8_t *key, struct ebpfMonQueryCell *cell)
{
    uint8_t whole[EBPFMON_QUERY_KEY_SIZE] = { 0 };
    const Cell *known;
    size_t place;

    memcpy(whole, key, s->keySize);
    known = findCell(s, whole, &place);
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
