/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The database of uses: one SQLite file, which outlives the monitor. Who used each PV last, by kind; and from when to when
 * each IOC was watched, and how, because a use that nobody watched is not in it. One thread at a time; two stores may have
 * the same file (WAL: who reads does not wait for who writes).
 *
 *     uses (ioc, record, kind, channel, who, first, last, count)  kind: ebpfMonUseKind; times in s since 1970
 *     watched (ioc, ways, began, ended)                           ways: EBPFMON_WATCHED_…
 */
#ifndef EBPFMON_USESTORE_H
#define EBPFMON_USESTORE_H

#include "usage/useNotes.h"

#define EBPFMON_WATCHED_LISTS   1 /* its server's clients were read */
#define EBPFMON_WATCHED_PUTS    2 /* puts were seen */
#define EBPFMON_WATCHED_PACKETS 4 /* packets were read: reads, and subscriptions that were short */
#define EBPFMON_WATCHED_ALL     7

#define EBPFMON_WATCH_GAP 60      /* s: shorter breaks are none */

typedef struct ebpfMonUseStore ebpfMonUseStore;

/* Opens the file; a writer makes it. "megabytes": it will not grow beyond. NULL: "why" says what is wrong with it, and what
 * to do. A file that is not ours, or damaged, is left as it is. */
ebpfMonUseStore *ebpfMonUseStoreOpen(const char *file, int isWriter, unsigned megabytes, char *why, size_t size);
void ebpfMonUseStoreClose(ebpfMonUseStore *store); /* NULL does no harm */

/* A batch: what is between Begin and End is in the file whole, or not at all. 0, or -1: "why". */
int ebpfMonUseStoreBegin(ebpfMonUseStore *store, char *why, size_t size);
int ebpfMonUseStoreAddUse(ebpfMonUseStore *store, const ebpfMonUse *use, char *why, size_t size);
/* The IOC is watched now; "ways": how. Goes on with what was noted before, if that is not longer ago than a gap. */
int ebpfMonUseStoreAddWatched(ebpfMonUseStore *store, const char *ioc, int ways, int64_t now, char *why, size_t size);
int ebpfMonUseStoreEnd(ebpfMonUseStore *store, char *why, size_t size);
/* Undoes it. */
void ebpfMonUseStoreCancel(ebpfMonUseStore *store);

/* Reading. Both call "each" in the order of time, oldest first. 0, or -1: "why". */
typedef struct {
    int64_t began, ended;
    int     ways;
} ebpfMonWatched;
int ebpfMonUseStoreEachUse(ebpfMonUseStore *store, const char *ioc, void (*each)(void *arg, const ebpfMonUse *use),
                           void *arg, char *why, size_t size);
int ebpfMonUseStoreEachWatched(ebpfMonUseStore *store, const char *ioc,
                               void (*each)(void *arg, const ebpfMonWatched *watched), void *arg, char *why, size_t size);

/* Uses in the file; -1: not known. */
int64_t ebpfMonUseStoreCount(ebpfMonUseStore *store);

#endif
