/* SPDX-License-Identifier: BSD-3-Clause */
/* SQLite with journal_mode WAL and synchronous NORMAL: if the monitor is killed, nothing that was written is lost.
 * If the host loses its power, the last transactions may be missing, but the file is not damaged
 * (sqlite.org/pragma.html#pragma_synchronous). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/shares.h"
#include "common/text.h"
#include "uses/useStore.h"

#define PAGE_BYTES 4096
#define BUSY_MS    2000
#define SPARE_PAGES 8 /* fewer than this are left when the file is full */
#define APPLICATION 0x65426d55 /* "eBmU", the PRAGMA application_id by which we know our own files */
#define VERSION    1

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
    sqlite3      *db;
    sqlite3_stmt *stmt[sqlStatements];
};

static void describeError(sqlite3 *db, const char *doing, char *why, size_t size)
{
    int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
    const char *todo = code == SQLITE_FULL ? ". Allow more MB (ebpfMonUsage), or free space on the disk" :
                       code == SQLITE_CORRUPT || code == SQLITE_NOTADB ?
                       ". Move the file away, or repair it with sqlite3 .recover" :
                       code == SQLITE_BUSY ? ". Another program has locked the file: end it" : "";

    snprintf(why, size, "%s: %s%s", doing, db ? sqlite3_errmsg(db) : "no memory", todo);
}

static int runSql(ebpfMonUseStore *store, const char *sql, char *why, size_t size)
{
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    describeError(store->db, "the file cannot be written", why, size);
    return -1;
}

/* Returns the number that a query gives; -1: "why" says what is wrong. */
static int64_t queryNumber(ebpfMonUseStore *store, const char *sql, char *why, size_t size)
{
    sqlite3_stmt *stmt = NULL;
    int64_t n = -1;

    if (sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        n = sqlite3_column_int64(stmt, 0);
    else
        describeError(store->db, "the file cannot be read", why, size);
    sqlite3_finalize(stmt);
    return n;
}

/* Accepts an empty file, and a file that has our application_id. 0, or -1: "why" says what is wrong. */
static int checkOwner(ebpfMonUseStore *store, char *why, size_t size)
{
    int64_t tables = queryNumber(store, "SELECT count(*) FROM sqlite_master", why, size);
    int64_t owner = tables < 0 ? -1 : queryNumber(store, "PRAGMA application_id", why, size);
    int64_t version = owner < 0 ? -1 : queryNumber(store, "PRAGMA user_version", why, size);

    if (version < 0)
        return -1;
    if ((tables && owner != APPLICATION) || version > VERSION) {
        snprintf(why, size, "%s. Choose another file", tables && owner != APPLICATION ?
                 "this is the database of another program" : "a newer release of ebpfMon wrote it");
        return -1;
    }
    return 0;
}

static int prepareWriter(ebpfMonUseStore *store, unsigned megabytes, char *why, size_t size)
{
    char sql[200];

    snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %u", megabytes * (1048576u / PAGE_BYTES));
    if (runSql(store, "PRAGMA journal_mode = WAL", why, size) ||
        runSql(store, "PRAGMA synchronous = NORMAL", why, size) ||
        runSql(store, sql, why, size) || runSql(store, schema, why, size))
        return -1;
    if (queryNumber(store, "SELECT count(*) FROM sqlite_master WHERE name = 'payers'", why, size) == 0 &&
        runSql(store, payersSchema, why, size))
        return -1;
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION, VERSION);
    return runSql(store, sql, why, size);
}

/* Makes the file if it is not there, and checks that it is ours and nobody else can replace it. SQLite makes two
 * more files in its folder (-wal, -shm), so other users must not be able to make files there. 0, or -1: "why" says
 * what is wrong. */
static int checkFile(const char *file, char *why, size_t size)
{
    char folder[4096];
    const char *slash = strrchr(file, '/');
    struct stat st;
    int fd;

    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - file) + 1 : 2, slash ? file : "./");
    if (stat(folder, &st) == 0 && (st.st_mode & S_IWOTH)) {
        snprintf(why, size, "everybody may write in its folder: choose another folder, or chmod o-w");
        return -1;
    }
    fd = ebpfMonOwnFileOpen(file, &st, why, size);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? -1 : 0;
}

ebpfMonUseStore *ebpfMonUseStoreOpen(const char *file, int isWriter, unsigned megabytes, char *why, size_t size)
{
    ebpfMonUseStore *store = calloc(1, sizeof(*store));
    int flags = isWriter ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY, i;

    if (!store)
        return NULL;
    if (isWriter && checkFile(file, why, size)) {
        free(store);
        return NULL;
    }
    if (sqlite3_open_v2(file, &store->db, flags, NULL) != SQLITE_OK) {
        describeError(store->db, "the file cannot be opened", why, size);
        ebpfMonUseStoreClose(store);
        return NULL;
    }
    sqlite3_busy_timeout(store->db, BUSY_MS);
    if (checkOwner(store, why, size) || (isWriter && prepareWriter(store, megabytes, why, size))) {
        ebpfMonUseStoreClose(store);
        return NULL;
    }
    for (i = isWriter ? 0 : sqlEachUse; i < sqlStatements; i++)
        if (sqlite3_prepare_v2(store->db, statements[i], -1, &store->stmt[i], NULL) != SQLITE_OK)
            break;
    if (i == sqlStatements)
        return store;
    describeError(store->db, "the file does not have the tables of ebpfMon", why, size);
    ebpfMonUseStoreClose(store);
    return NULL;
}

void ebpfMonUseStoreClose(ebpfMonUseStore *store)
{
    if (!store)
        return;
    for (int i = 0; i < sqlStatements; i++)
        sqlite3_finalize(store->stmt[i]);
    sqlite3_close(store->db);
    free(store);
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static int runStatement(ebpfMonUseStore *store, int which, char *why, size_t size)
{
    int status = sqlite3_step(store->stmt[which]);

    if (status != SQLITE_DONE)
        describeError(store->db, "the file cannot be written", why, size);
    sqlite3_reset(store->stmt[which]);
    return status == SQLITE_DONE ? 0 : status == SQLITE_FULL ? EBPFMON_STORE_FULL : -1;
}

static void bindText(sqlite3_stmt *stmt, int at, const char *text)
{
    sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT);
}

/* SQLite keeps pages in its memory and goes on if another program removes the file or writes over it; what it writes
 * then is lost when the monitor ends. So before each transaction we look at the file itself. 0, or -1: "why" says what
 * is wrong. */
static int checkUnchanged(ebpfMonUseStore *store, char *why, size_t size)
{
    static const char begin[16] = "SQLite format 3"; /* sqlite.org/fileformat.html */
    char found[sizeof(begin)];
    sqlite3_file *file = NULL;
    int isMoved = 0;

    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &isMoved) == SQLITE_OK && isMoved) {
        snprintf(why, size, "somebody has moved or removed the file. A new one is begun");
        return -1;
    }
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
        !file->pMethods)
        return 0;
    if (file->pMethods->xRead(file, found, sizeof(found), 0) == SQLITE_OK && memcmp(found, begin, sizeof(begin)) == 0)
        return 0;
    snprintf(why, size, "somebody has written over the file. Move it away, or repair it with sqlite3 .recover");
    return -1;
}

int ebpfMonUseStoreBegin(ebpfMonUseStore *store, char *why, size_t size)
{
    if (checkUnchanged(store, why, size))
        return -1;
    return runSql(store, "BEGIN IMMEDIATE", why, size);
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

    return status == 0 && !sqlite3_changes(store->db) ? 1 : status;
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
        if (which == sqlWatchedOn && sqlite3_changes(store->db))
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
    int64_t pages = queryNumber(store, "PRAGMA page_count", why, size) -
                    queryNumber(store, "PRAGMA freelist_count", why, size);
    int64_t allowed = queryNumber(store, "PRAGMA max_page_count", why, size);

    *most = EBPFMON_STORE_NOBODY;
    if (pages < allowed - SPARE_PAGES || !findMost(store, most) || *most == payer)
        return 0;
    return forgetIoc(store, *most, why, size);
}

int ebpfMonUseStoreEnd(ebpfMonUseStore *store, char *why, size_t size)
{
    return runSql(store, "COMMIT", why, size);
}

void ebpfMonUseStoreCancel(ebpfMonUseStore *store)
{
    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
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
        describeError(store->db, "the file cannot be read", why, size);
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
        describeError(store->db, "the file cannot be read", why, size);
    sqlite3_reset(stmt);
    return status == SQLITE_DONE ? 0 : -1;
}

int64_t ebpfMonUseStoreCount(ebpfMonUseStore *store)
{
    int64_t n = sqlite3_step(store->stmt[sqlCount]) == SQLITE_ROW ? sqlite3_column_int64(store->stmt[sqlCount], 0) : -1;

    sqlite3_reset(store->stmt[sqlCount]);
    return n;
}
