/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of one query: a row for each key. The texts of a key are found when it is first seen, because its IOC may be
 * gone later. The query thread only.
 */
#ifndef EBPFMON_QUERYROWS_H
#define EBPFMON_QUERYROWS_H

#include "query/queryKeyText.h"
#include "query/querySpec.h"

typedef struct ebpfMonQueryRows ebpfMonQueryRows;

ebpfMonQueryRows *ebpfMonQueryRowsNew(const ebpfMonQuerySpec *spec, unsigned keySize); /* NULL: no memory */
void ebpfMonQueryRowsFree(ebpfMonQueryRows *rows); /* NULL does no harm */

/* To read the results: Begin, then Add for each key that the kernel part has, then End. "seconds": since the last time. */
void ebpfMonQueryRowsBegin(ebpfMonQueryRows *rows);
void ebpfMonQueryRowsAdd(ebpfMonQueryRows *rows, const uint8_t *key, const struct ebpfMonQueryCell *cell);
void ebpfMonQueryRowsEnd(ebpfMonQueryRows *rows, const ebpfMonQueryNames *names, double seconds);

/* Writes rows, numbers of rows, and the histogram of a result. */
void ebpfMonQueryRowsCopy(const ebpfMonQueryRows *rows, ebpfMonQueryResult *result);

#endif
