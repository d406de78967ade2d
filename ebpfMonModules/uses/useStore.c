/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/shares.h"
#include "common/text.h"
#include "shared/sqliteFile.h"
#include "uses/useStore.h"

#define SPARE_PAGES 8 /* fewer than this are left when the file is full */

static const ebpfMonSqliteKind kind = { 0x65426d55 /* "eBmU" */, 1,
                                        ". Allow more MB (ebpfMonUsage), or free space on the disk" };

#define USE_COLUMNS "ioc, record, kind, channel, who, first, last, count"

/* ?9: a date after this one was written while the clock was ahead, and does not count. A use that was noted late does
 * not replace a newer one. */
#define NEWER(column, value) column " = CASE WHEN ?7 < last AND last <= ?9 THEN " column " ELSE " value " END, "
#define SET_USE "SET " NEWER("channel", "?4") NEWER("who", "?5") "first = min(first, ?6), " \
                "last = CASE WHEN last > ?9 THEN ?7 ELSE max(last, ?7) END, count = count + ?8"

/* How many uses each has who pays: as many as there are users. */
#define SHARES "FROM uses LEFT JOIN payers USING (ioc) GROUP BY coalesce(payer, -1)"

enum {
    sqlUse, sqlKnownUse, sqlWatchedOn, sqlWatchedNew, sqlSetPayer, sqlGetPayer, sqlMost, sqlNewest, sqlForgetUses,
    sqlForgetWatched, sqlEachUse, sqlEachWatched, sqlCount, sqlStatements
};

static const char *const statements[sqlStatements] = {
    [sqlUse] = "INSERT INTO uses (" USE_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) "
               "ON CONFLICT (ioc, record, kind) DO UPDATE " SET_USE,
    [sqlKnownUse] = "UPDATE uses " SET_USE " WHERE ioc = ?1 AND record = ?2 AND kind = ?3",
    [sqlWatchedOn] = "UPDATE watched SET ended = ?3 WHERE rowid = (SELECT rowid FROM watched WHERE ioc = ?1 "
                     "AND ended <= ?3 ORDER BY ended DESC, rowid DESC LIMIT 1) AND ways = ?2 AND ended >= ?3 - ?4",
    [sqlWatchedNew] = "INSERT INTO watched (ioc, ways, began, ended) VALUES (?1, ?2, ?3, ?3)",
    [sqlSetPayer] = "INSERT INTO payers (ioc, payer) VALUES (?1, ?2) ON CONFLICT (ioc) DO UPDATE SET payer = ?2 "
                    "WHERE payer >= ?3 AND ?2 < ?3",
    [sqlGetPayer] = "SELECT coalesce((SELECT payer FROM payers WHERE ioc = ?), -1)",
    /* -1: not known; such a user is no system user. ?1: EBPFMON_SYSTEM_USERS */
    [sqlMost] = "SELECT coalesce(payer, -1) AS user, count(*) AS n " SHARES " HAVING user < 0 OR user >= ?1 "
                "ORDER BY n DESC, user LIMIT 1",
    [sqlNewest] = "SELECT ioc FROM uses LEFT JOIN payers USING (ioc) WHERE coalesce(payer, -1) = ? GROUP BY ioc "
                  "ORDER BY min(first) DESC LIMIT 1",
    [sqlForgetUses] = "DELETE FROM uses WHERE ioc = ?",
    [sqlForgetWatched] = "DELETE FROM watched WHERE ioc = ?",
    [sqlEachUse] = "SELECT " USE_COLUMNS " FROM uses WHERE ioc = ? ORDER BY last",
    [sqlEachWatched] = "SELECT began, ended, ways FROM watched WHERE ioc = ? ORDER BY began",
    [sqlCount] = "SELECT count(*) FROM uses",
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS uses (ioc TEXT NOT NULL, record TEXT NOT NULL, kind INTEGER NOT NULL, channel TEXT, "
    "who TEXT, first INTEGER NOT NULL, last INTEGER NOT NULL, count INTEGER NOT NULL, "
    "PRIMARY KEY (ioc, record, kind)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS watched (ioc TEXT NOT NULL, ways INTEGER NOT NULL, began INTEGER NOT NULL, "
    "ended INTEGER NOT NULL);"
    "CREATE INDEX IF NOT EXISTS watchedByIoc ON watched (ioc, ended);";

/* What is in a file of an earlier version stays: root pays for it. */
static const char payersSchema[] =
    "CREATE TABLE payers (ioc TEXT PRIMARY KEY, payer INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO payers SELECT DISTINCT ioc, 0 FROM uses;";

struct ebpfMonUseStore {
    ebpfMonSqlite file;
    sqlite3_stmt *stmt[sqlStatements];
};

static int prepareWriter(ebpfMonUseStore *store, unsigned megabytes, char *why, size_t size)
{
    char sql[60];

    snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %u", megabytes * (1048576u / EBPFMON_SQLITE_PAGE));
    if (ebpfMonSqliteRun(&store->file, sql, why, size) || ebpfMonSqliteMake(&store->file, schema, why, size))
        return -1;
    return ebpfMonSqliteGetNumber(&store->file, "SELECT count(*) FROM sqlite_master WHERE name = 'payers'", why,
                                  size) == 0 ? ebpfMonSqliteRun(&store->file, payersSchema, why, size) : 0;
}

ebpfMonUseStore *ebpfMonUseStoreOpen(const char *file, int isWriter, unsigned megabytes, char *why, size_t size)
{
    ebpfMonUseStore *store = calloc(1, sizeof(*store));
    int flags = isWriter ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    unsigned from = isWriter ? 0 : sqlEachUse;

    if (!store)
        return NULL;
    if ((isWriter && ebpfMonSqliteLock(&store->file, file, why, size)) ||
        ebpfMonSqliteOpen(&store->file, &kind, file, flags, why, size) ||
        (isWriter && prepareWriter(store, megabytes, why, size)) ||
        ebpfMonSqlitePrepare(&store->file, statements + from, store->stmt + from, sqlStatements - from, why, size)) {
        ebpfMonUseStoreClose(store);
        return NULL;
    }
    return store;
}

void ebpfMonUseStoreClose(ebpfMonUseStore *store)
{
    if (!store)
        return;
    ebpfMonSqliteClose(&store->file, store->stmt, sqlStatements);
    free(store);
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static int runStatement(ebpfMonUseStore *store, int which, char *why, size_t size)
{
    int status = sqlite3_step(store->stmt[which]);

    if (status != SQLITE_DONE)
        ebpfMonSqliteDescribe(&store->file, "not written", why, size);
    sqlite3_reset(store->stmt[which]);
    return status == SQLITE_DONE ? 0 : status == SQLITE_FULL ? EBPFMON_STORE_FULL : -1;
}

static void bindText(sqlite3_stmt *stmt, int at, const char *text)
{
    sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT);
}

int ebpfMonUseStoreBegin(ebpfMonUseStore *store, char *why, size_t size)
{
    if (ebpfMonSqliteCheckUnchanged(&store->file, why, size))
        return -1;
    return ebpfMonSqliteRun(&store->file, "BEGIN IMMEDIATE", why, size);
}

static int runUse(ebpfMonUseStore *store, int which, const ebpfMonUse *use, char *why, size_t size)
{
    sqlite3_stmt *stmt = store->stmt[which];

    bindText(stmt, 1, use->ioc);
    bindText(stmt, 2, use->record);
    sqlite3_bind_int(stmt, 3, (int)use->kind);
    bindText(stmt, 4, use->channel);
    bindText(stmt, 5, use->who);
    sqlite3_bind_int64(stmt, 6, use->first);
    sqlite3_bind_int64(stmt, 7, use->last);
    sqlite3_bind_int64(stmt, 8, (int64_t)use->count);
    sqlite3_bind_int64(stmt, 9, ebpfMonClockUnixSeconds() + EBPFMON_WATCH_GAP);
    return runStatement(store, which, why, size);
}

int ebpfMonUseStoreAddUse(ebpfMonUseStore *store, const ebpfMonUse *use, char *why, size_t size)
{
    return runUse(store, sqlUse, use, why, size);
}

int ebpfMonUseStoreUpdateUse(ebpfMonUseStore *store, const ebpfMonUse *use, char *why, size_t size)
{
    int status = runUse(store, sqlKnownUse, use, why, size);

    return status == 0 && !sqlite3_changes(store->file.db) ? 1 : status;
}

int ebpfMonUseStoreAddWatched(ebpfMonUseStore *store, const char *ioc, int ways, int64_t now, char *why, size_t size)
{
    int status;

    for (int which = sqlWatchedOn; which <= sqlWatchedNew; which++) {
        sqlite3_stmt *stmt = store->stmt[which];

        bindText(stmt, 1, ioc);
        sqlite3_bind_int(stmt, 2, ways);
        sqlite3_bind_int64(stmt, 3, now);
        if (which == sqlWatchedOn)
            sqlite3_bind_int(stmt, 4, EBPFMON_WATCH_GAP);
        status = runStatement(store, which, why, size);
        if (status)
            return status;
        if (which == sqlWatchedOn && sqlite3_changes(store->file.db))
            break;
    }
    return 0;
}

int ebpfMonUseStoreSetPayer(ebpfMonUseStore *store, const char *ioc, uid_t payer, char *why, size_t size)
{
    sqlite3_stmt *stmt = store->stmt[sqlSetPayer];

    bindText(stmt, 1, ioc);
    sqlite3_bind_int64(stmt, 2, payer);
    sqlite3_bind_int64(stmt, 3, EBPFMON_SYSTEM_USERS);
    return runStatement(store, sqlSetPayer, why, size);
}

int64_t ebpfMonUseStoreGetPayer(ebpfMonUseStore *store, const char *ioc)
{
    sqlite3_stmt *stmt = store->stmt[sqlGetPayer];
    int64_t payer;

    bindText(stmt, 1, ioc);
    payer = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    sqlite3_reset(stmt);
    return payer;
}

/* Who has most uses, of those who are no system users. 0: nobody has any. */
static int findMost(ebpfMonUseStore *store, int64_t *payer)
{
    sqlite3_stmt *stmt = store->stmt[sqlMost];
    int found;

    sqlite3_bind_int64(stmt, 1, EBPFMON_SYSTEM_USERS);
    found = sqlite3_step(stmt) == SQLITE_ROW;
    *payer = found ? sqlite3_column_int64(stmt, 0) : EBPFMON_STORE_NOBODY;
    sqlite3_reset(stmt);
    return found;
}

static int forgetIoc(ebpfMonUseStore *store, int64_t payer, char *why, size_t size)
{
    sqlite3_stmt *stmt = store->stmt[sqlNewest];
    char ioc[sizeof(((ebpfMonUse *)0)->ioc)] = "";
    int status = 0;

    sqlite3_bind_int64(stmt, 1, payer);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        ebpfMonTextCopy(ioc, sizeof(ioc), (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_reset(stmt);
    for (int which = sqlForgetUses; which <= sqlForgetWatched && status == 0; which++) {
        bindText(store->stmt[which], 1, ioc);
        status = runStatement(store, which, why, size);
    }
    return status ? -1 : 1;
}

int ebpfMonUseStoreMakeRoom(ebpfMonUseStore *store, int64_t payer, int64_t *most, char *why, size_t size)
{
    int64_t pages = ebpfMonSqliteCountPages(&store->file, why, size);
    int64_t allowed = ebpfMonSqliteGetNumber(&store->file, "PRAGMA max_page_count", why, size);

    *most = EBPFMON_STORE_NOBODY;
    if (pages < allowed - SPARE_PAGES || !findMost(store, most) || *most == payer)
        return 0;
    return forgetIoc(store, *most, why, size);
}

int ebpfMonUseStoreEnd(ebpfMonUseStore *store, char *why, size_t size)
{
    return ebpfMonSqliteRun(&store->file, "COMMIT", why, size);
}

void ebpfMonUseStoreCancel(ebpfMonUseStore *store)
{
    sqlite3_exec(store->file.db, "ROLLBACK", NULL, NULL, NULL);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

static void copyText(sqlite3_stmt *stmt, int column, char *buf, size_t size)
{
    const unsigned char *text = sqlite3_column_text(stmt, column);

    ebpfMonTextCopy(buf, size, text ? (const char *)text : "");
}

static void passUse(sqlite3_stmt *stmt, void (*each)(void *arg, const ebpfMonUse *use), void *arg)
{
    ebpfMonUse use = { .kind = (ebpfMonUseKind)sqlite3_column_int(stmt, 2) };

    copyText(stmt, 0, use.ioc, sizeof(use.ioc));
    copyText(stmt, 1, use.record, sizeof(use.record));
    copyText(stmt, 3, use.channel, sizeof(use.channel));
    copyText(stmt, 4, use.who, sizeof(use.who));
    use.first = sqlite3_column_int64(stmt, 5);
    use.last = sqlite3_column_int64(stmt, 6);
    use.count = (uint64_t)sqlite3_column_int64(stmt, 7);
    each(arg, &use);
}

int ebpfMonUseStoreEachUse(ebpfMonUseStore *store, const char *ioc, void (*each)(void *arg, const ebpfMonUse *use),
                           void *arg, char *why, size_t size)
{
    sqlite3_stmt *stmt = store->stmt[sqlEachUse];
    int status;

    bindText(stmt, 1, ioc);
    while ((status = sqlite3_step(stmt)) == SQLITE_ROW)
        passUse(stmt, each, arg);
    if (status != SQLITE_DONE)
        ebpfMonSqliteDescribe(&store->file, "the file cannot be read", why, size);
    sqlite3_reset(stmt);
    return status == SQLITE_DONE ? 0 : -1;
}

int ebpfMonUseStoreEachWatched(ebpfMonUseStore *store, const char *ioc,
                               void (*each)(void *arg, const ebpfMonWatched *watched), void *arg, char *why,
                               size_t size)
{
    sqlite3_stmt *stmt = store->stmt[sqlEachWatched];
    int status;

    bindText(stmt, 1, ioc);
    while ((status = sqlite3_step(stmt)) == SQLITE_ROW)
        each(arg, &(ebpfMonWatched){ .began = sqlite3_column_int64(stmt, 0), .ended = sqlite3_column_int64(stmt, 1),
                                     .ways = sqlite3_column_int(stmt, 2) });
    if (status != SQLITE_DONE)
        ebpfMonSqliteDescribe(&store->file, "the file cannot be read", why, size);
    sqlite3_reset(stmt);
    return status == SQLITE_DONE ? 0 : -1;
}

int64_t ebpfMonUseStoreCount(ebpfMonUseStore *store)
{
    int64_t n = sqlite3_step(store->stmt[sqlCount]) == SQLITE_ROW ? sqlite3_column_int64(store->stmt[sqlCount], 0) : -1;

    sqlite3_reset(store->stmt[sqlCount]);
    return n;
}
