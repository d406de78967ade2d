/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of uses: an SQLite database, which stays when the monitor ends. It has the last use of each PV, for each
 * kind of use. It also has the times at which each IOC was watched, and in which ways, because a use outside these
 * times is not known.
 *
 * One thread at a time may use a store. Two stores may open the same file: in WAL mode a reader does not wait for the
 * writer.
 *
 * uses (ioc, record, kind, channel, who, first, last, count)  kind: ebpfMonUseKind; times in s since 1970
 * watched (ioc, ways, began, ended)                           ways: EBPFMON_WATCHED_…
 * payers (ioc, payer)                                         a user id
 */
#ifndef EBPFMON_USESTORE_H
#define EBPFMON_USESTORE_H

#include <sys/types.h>

#include "clients/clientTable.h"
#include "uses/useNotes.h"

#define EBPFMON_WATCHED_LISTS   1 /* the list of its clients was read */
#define EBPFMON_WATCHED_PUTS    2 /* puts were seen */
#define EBPFMON_WATCHED_PACKETS 4 /* packets were read: they show reads, and subscriptions that end before the next
                                   * look */
#define EBPFMON_WATCHED_CONNECTIONS 8 /* each connection to its servers was followed from its first byte on, or is in
                                        * that list. Files of earlier versions do not have this */
#define EBPFMON_WATCHED_ALL     15

#define EBPFMON_STORE_FULL (-2)   /* there is no room */
#define EBPFMON_STORE_NOBODY (-2) /* no user; -1 is one who is not known */

typedef struct ebpfMonUseStore ebpfMonUseStore;

/* Opens the file; a writer makes it if it is not there. "megabytes": its largest size, for a writer. NULL: "why"
 * says what is wrong and what to do. A damaged file, or a file of another program, stays as it is. */
ebpfMonUseStore *ebpfMonUseStoreOpen(const char *file, int isWriter, unsigned megabytes, char *why, size_t size);
void ebpfMonUseStoreClose(ebpfMonUseStore *store); /* NULL does no harm */

/* A transaction: either all that is added between Begin and End is in the file afterwards, or nothing. 0, or -1:
 * "why" says what is wrong. */
int ebpfMonUseStoreBegin(ebpfMonUseStore *store, char *why, size_t size);
/* EBPFMON_STORE_FULL: there is no room for it, and SQLite has undone the whole transaction. */
int ebpfMonUseStoreAddUse(ebpfMonUseStore *store, const ebpfMonUse *use, char *why, size_t size);
/* Adds to a use that is in the file already, so a full file has room for it, unless its names became longer. 1: it is
 * not in the file, and nothing is done. */
int ebpfMonUseStoreUpdateUse(ebpfMonUseStore *store, const ebpfMonUse *use, char *why, size_t size);
/* The IOC is watched at "now" (s since 1970), in these ways (EBPFMON_WATCHED_…). If it was watched in the same ways
 * at most EBPFMON_WATCH_GAP before, that row is extended. Returns as ebpfMonUseStoreAddUse. */
int ebpfMonUseStoreAddWatched(ebpfMonUseStore *store, const char *ioc, int ways, int64_t now, char *why, size_t size);
/* Who pays for the uses of this IOC (host/procRead.h). The first one stays, unless a system user comes. */
int ebpfMonUseStoreSetPayer(ebpfMonUseStore *store, const char *ioc, uid_t payer, char *why, size_t size);
int64_t ebpfMonUseStoreGetPayer(ebpfMonUseStore *store, const char *ioc); /* -1: not known */
/* The file is full, and "payer" wants more: if another one has more uses (*most), and is no system user, the newest IOC
 * of his is forgotten, and that it was watched. 1: so it was. 0: there is none, or it is the disk that is full; if
 * *most is "payer" he gets no more. -1: "why" says what is wrong. Takes a second for a million uses. */
int ebpfMonUseStoreMakeRoom(ebpfMonUseStore *store, int64_t payer, int64_t *most, char *why, size_t size);
int ebpfMonUseStoreEnd(ebpfMonUseStore *store, char *why, size_t size);
/* Undoes a transaction. */
void ebpfMonUseStoreCancel(ebpfMonUseStore *store);

/* --- Reading. Both functions call each(arg, …) for all rows of an IOC, the oldest first. 0, or -1: "why" says what
 * is wrong --- */

typedef struct {
    int64_t began, ended; /* s since 1970 */
    int     ways;         /* EBPFMON_WATCHED_… */
} ebpfMonWatched;
int ebpfMonUseStoreEachUse(ebpfMonUseStore *store, const char *ioc, void (*each)(void *arg, const ebpfMonUse *use),
                           void *arg, char *why, size_t size);
int ebpfMonUseStoreEachWatched(ebpfMonUseStore *store, const char *ioc,
                               void (*each)(void *arg, const ebpfMonWatched *watched), void *arg, char *why,
                               size_t size);

/* The number of uses in the file; -1: not known. */
int64_t ebpfMonUseStoreCount(ebpfMonUseStore *store);

#endif
