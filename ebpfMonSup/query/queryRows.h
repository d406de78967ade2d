/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of one query: one row for each key. The texts of a key are made when the key is first seen, because its
 * IOC may have ended later. The query thread only.
 */
#ifndef EBPFMON_QUERYROWS_H
#define EBPFMON_QUERYROWS_H

#include "query/queryKeyText.h"
#include "query/querySpec.h"

typedef struct ebpfMonQueryRows ebpfMonQueryRows;

/* "spec" stays the caller's; "keySize": bytes of a key. NULL without memory. */
ebpfMonQueryRows *ebpfMonQueryRowsNew(const ebpfMonQuerySpec *spec, unsigned keySize);
void ebpfMonQueryRowsFree(ebpfMonQueryRows *rows); /* NULL does no harm */

/* To read the results, call Begin, then Add for each key that the kernel part has, then End. "seconds": the time
 * since the last End, for rates. End takes the targets lock to look up names. Keys for which there is no memory are
 * left out. */
void ebpfMonQueryRowsBegin(ebpfMonQueryRows *rows);
void ebpfMonQueryRowsAdd(ebpfMonQueryRows *rows, const uint8_t *key, const struct ebpfMonQueryCell *cell);
void ebpfMonQueryRowsEnd(ebpfMonQueryRows *rows, const ebpfMonQueryNames *names, double seconds);

/* The histogram over all keys, of the last look: EBPFMON_QUERY_BARS_MAX bars (queryBars.h). */
const uint64_t *ebpfMonQueryRowsGetBars(const ebpfMonQueryRows *rows);

/* Writes the rows, their number, and the histogram into a result. The caller holds the lock of the results. */
void ebpfMonQueryRowsCopy(const ebpfMonQueryRows *rows, ebpfMonQueryResult *result);

#endif
