/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cells that the monitor fills itself, by key, where the kernel part cannot: a value belongs to a function of a stack,
 * or is what a put had in all. The query thread only.
 */
#ifndef EBPFMON_QUERYCELLS_H
#define EBPFMON_QUERYCELLS_H

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonQuery.h"

typedef struct {
    uint8_t key[EBPFMON_QUERY_KEY_SIZE]; /* unused bytes are 0 */
    struct ebpfMonQueryCell cell;
} ebpfMonQueryKeyCell;

/* Begins as all zeros. */
typedef struct {
    ebpfMonQueryKeyCell **cell; /* sorted by key */
    size_t count, room;
} ebpfMonQueryCells;

/* Frees all cells, not "cells" itself. */
void ebpfMonQueryCellsClear(ebpfMonQueryCells *cells);

/* Returns the cell of a key of EBPFMON_QUERY_KEY_SIZE bytes. NULL: there is none. */
ebpfMonQueryKeyCell *ebpfMonQueryCellsFind(const ebpfMonQueryCells *cells, const uint8_t *key);

/* The same, and makes it if there are fewer than "most". NULL: there is no room. */
ebpfMonQueryKeyCell *ebpfMonQueryCellsGet(ebpfMonQueryCells *cells, const uint8_t *key, size_t most);

/* Nonzero: the sum of this cell may have wrapped while so many events came. Their values are between the least and the
 * greatest one that the cell has had. */
int ebpfMonQueryCellMayWrap(const struct ebpfMonQueryCell *cell, uint64_t events);

/* Adds a value, as the programs in the kernel do. at: monotonic ns. */
void ebpfMonQueryCellAdd(const struct ebpfMonQueryPlan *plan, struct ebpfMonQueryCell *cell, int64_t value,
                         uint64_t at);

#endif
