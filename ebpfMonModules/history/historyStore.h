/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of the history: an SQLite database, which anybody's tools can read.
 *
 * rows (time, first, kind, automatic, ioc, pv, value, old, user, host, peer, who, origin, result, reason, n, least,
 *       most, chain, source, steps, tree, trace, hash)
 *   time         ns since 1970 (UTC): of a put, of the last one of a run, of the end of a gap
 *   first        the same; of a run that of its first put, of a gap its begin
 *   kind         put, event, chain, minute, client, start, gap, lost; in a frozen file also ioc, and of each IOC record
 *                and variables (JSON in "value")
 *   automatic    1: an IOC made the put by itself. Such puts of one writer to one PV are kept as runs: n puts, of which
 *                "value" is the last value, "least" and "most" the smallest and the largest number
 *   reason       why the rules do not expect the put; NULL: they do
 *   chain        of a put: the chain that began with it; of kind chain: the first one. NULL: none, or not known. A text
 *                that is the same for the same chain of this host, and for no other one
 *   source       the chain in which the put was made, or that caused the chain; of a run that of its last put
 *   steps, tree  of kind chain: its other chains, with a blank between them; its records, as text of several lines
 *   trace        of a put over the network: made of its connection and TCP sequence number, which both hosts know; the
 *                id of a trace that begins with it (trace/traceSpans.h); of a run that of its last put
 *   hash         of a put whose value is cut: of all that was sent (64-bit FNV-1a)
 * meta (key, value)   alive: when the monitor wrote last; stopped: 1 if it has ended in order; bytes of both kinds of
 *                     rows
 *
 * Rows of people and automatic rows have half of the room each, if both need it: automatic puts do not push people out.
 * Beside it, file-wal has up to a quarter of its size, at least 4 MB.
 * One thread at a time may use a store; a reader and the writer may have the same file.
 */
#ifndef EBPFMON_HISTORYSTORE_H
#define EBPFMON_HISTORYSTORE_H

#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#define EBPFMON_HISTORY_TEXTS 17

/* SQL: a put that wrote nothing, as far as is known. */
#define EBPFMON_HISTORY_FAILED "result IN ('denied', 'failed', 'lost', 'unwritten')"

typedef struct {
    uint64_t time, first;  /* ns since 1970 */
    const char *kind;
    int automatic;
    const char *ioc, *pv, *value, *old, *user, *host, *peer, *who, *origin, *result, *reason, *chain, *source,
        *steps, *tree, *trace, *hash; /* NULL: none */
    uint64_t n;
    int isNumber;          /* nonzero: "least" and "most" are known */
    double least, most;
} ebpfMonHistoryRow;

/* The texts of a row but for "kind", in the order of the members. */
void ebpfMonHistoryRowList(ebpfMonHistoryRow *row, const char **list[EBPFMON_HISTORY_TEXTS]);

/* A row as it lies in the queue, and in the ring of the newest rows. "text": kind, and the texts of a row; NULL: none.
 * Texts for which there is no room are cut. Pack returns the length; after Unpack the texts of "row" lie in "at". */
#define EBPFMON_HISTORY_PACKED 8192 /* bytes */
size_t ebpfMonHistoryRowPack(uint64_t time, int automatic, const char *const text[1 + EBPFMON_HISTORY_TEXTS],
                             uint8_t buf[EBPFMON_HISTORY_PACKED]);
void ebpfMonHistoryRowUnpack(const uint8_t *at, ebpfMonHistoryRow *row);

typedef struct ebpfMonHistoryStore ebpfMonHistoryStore;

/* Opens the file, and makes it if it is not there. NULL: "why" says what is wrong and what to do. A damaged file, or
 * one of another program, stays as it is. */
ebpfMonHistoryStore *ebpfMonHistoryStoreOpen(const char *file, unsigned megabytes, unsigned days, char *why,
                                             size_t size);
void ebpfMonHistoryStoreClose(ebpfMonHistoryStore *store); /* NULL does no harm */

/* Before Close: nobody will write this file any more, so readers need no other file beside it. 0, or -1. */
int ebpfMonHistoryStoreFinish(ebpfMonHistoryStore *store, char *why, size_t size);

/* For programs that only read; also the tar of a frozen history. NULL: "why" says what is wrong. The caller closes it
 * with sqlite3_close. This connection has a table "gaps", as "rows": those of the kinds gap and lost, and what is
 * before the first row (first 0; automatic 1: of what IOCs did by themselves) and after the last one, if nobody
 * writes the file now. */
sqlite3 *ebpfMonHistoryStoreOpenReader(const char *file, char *why, size_t size);

/* Nonzero: the file is of an earlier release. Then "rows" are not the table, but have its columns. */
int ebpfMonHistoryStoreIsOld(sqlite3 *db);

/* Why a question to such a reader failed, and what to do. */
void ebpfMonHistoryStoreDescribe(sqlite3 *db, char *why, size_t size);

/* A transaction: either all that is added between Begin and End is in the file afterwards, or nothing. Before room is
 * short, or if rows are too old, End removes the oldest ones. 0, or -1: "why" says what is wrong; it was undone. */
int ebpfMonHistoryStoreBegin(ebpfMonHistoryStore *store, char *why, size_t size);
int ebpfMonHistoryStoreAdd(ebpfMonHistoryStore *store, const ebpfMonHistoryRow *row, char *why, size_t size);
int ebpfMonHistoryStoreEnd(ebpfMonHistoryStore *store, uint64_t now, int isStop, char *why, size_t size);

/* When the monitor wrote last (ns since 1970; 0: never), and if it ended in order. */
uint64_t ebpfMonHistoryStoreGetAlive(ebpfMonHistoryStore *store, int *isStopped);

/* Rows in the file. */
uint64_t ebpfMonHistoryStoreCount(const ebpfMonHistoryStore *store);

#endif
