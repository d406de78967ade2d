/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "query/queryCells.h"
#include "query/queryPuts.h"

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
