/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "query/queryCells.h"

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

/* The bucket of a value in the histogram. This and ebpfMonQueryCellAdd() as addValue() of bpf/query/queryLook.bpf.h. */
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
