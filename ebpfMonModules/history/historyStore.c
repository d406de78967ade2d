/* SPDX-License-Identifier: BSD-3-Clause */
/* SQLite with journal_mode WAL and synchronous NORMAL: if the monitor is killed, nothing that was written is lost. If
 * the host loses its power, the last transactions may be missing, but the file is not damaged
 * (sqlite.org/pragma.html#pragma_synchronous). Pages of rows that were removed are used again, so the file keeps its
 * size and needs no VACUUM. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "history/historyStore.h"

#define PAGE_BYTES  4096
#define BUSY_MS     2000
#define APPLICATION 0x65426d48 /* "eBmH", the PRAGMA application_id by which we know our own files */
#define VERSION     2 /* 1: without chain, source, steps, tree */
#define CHUNK       2000 /* rows that one transaction removes at most, so that it stays short */
#define DAY_NS      86400000000000ull
#define TEXTS_BEFORE 11 /* texts of a row that stand before its numbers */

#define COLUMNS "time, kind, automatic, ioc, pv, value, old, user, host, peer, who, origin, result, reason, n, " \
                "first, least, most, chain, source, steps, tree"

enum { sqlAdd, sqlMeta, sqlForget, sqlForgetOld, sqlStatements };

static const char *const statements[sqlStatements] = {
    [sqlAdd] = "INSERT INTO rows (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
               "?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
    [sqlMeta] = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)",
    [sqlForget] = "DELETE FROM rows WHERE id IN (SELECT id FROM rows WHERE automatic = ?1 ORDER BY time LIMIT ?2)",
    [sqlForgetOld] = "DELETE FROM rows WHERE id IN (SELECT id FROM rows WHERE automatic = ?1 AND time < ?3 "
                     "ORDER BY time LIMIT ?2)",
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL, "
    "automatic INTEGER NOT NULL, ioc TEXT, pv TEXT, value TEXT, old TEXT, user TEXT, host TEXT, peer TEXT, who TEXT, "
    "origin TEXT, result TEXT, reason TEXT, n INTEGER NOT NULL, first INTEGER NOT NULL, least REAL, most REAL, "
    "chain TEXT, source TEXT, steps TEXT, tree TEXT);"
    "CREATE INDEX IF NOT EXISTS rowsByTime ON rows (automatic, time);"
    "CREATE INDEX IF NOT EXISTS rowsByPv ON rows (pv, time);"
    "CREATE INDEX IF NOT EXISTS rowsByUser ON rows (user, time) WHERE user IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS gapsByTime ON rows (time) WHERE kind IN ('gap', 'lost');"
    "CREATE INDEX IF NOT EXISTS rowsByChain ON rows (chain) WHERE chain IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS rowsBySource ON rows (source) WHERE source IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS unexpectedByTime ON rows (time) WHERE reason IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS failedByTime ON rows (time) WHERE " EBPFMON_HISTORY_FAILED ";"
    /* a query that uses this one must have the same condition */
    "CREATE INDEX IF NOT EXISTS rowsByKind ON rows (kind, time) WHERE kind <> 'put';"
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;";

static const char newColumns[] =
    "BEGIN IMMEDIATE; ALTER TABLE rows ADD COLUMN chain TEXT; ALTER TABLE rows ADD COLUMN source TEXT;"
    "ALTER TABLE rows ADD COLUMN steps TEXT; ALTER TABLE rows ADD COLUMN tree TEXT; PRAGMA user_version = 2; COMMIT";

struct ebpfMonHistoryStore {
    sqlite3      *db;
    sqlite3_stmt *stmt[sqlStatements];
    uint64_t count[2]; /* rows of people, and automatic ones */
    uint64_t added[2]; /* … in this transaction */
    uint64_t pagesMost, keepNs;
};

static void describeError(sqlite3 *db, const char *doing, char *why, size_t size)
{
    int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
    const char *todo = code == SQLITE_FULL ? ". Free space on the disk; it is tried again by itself" :
                       code == SQLITE_CORRUPT || code == SQLITE_NOTADB ?
                       ". Move the file away, or repair it with sqlite3 .recover" :
                       code == SQLITE_BUSY ? ". Another program has locked the file: end it" : "";

    snprintf(why, size, "%s: %s%s", doing, db ? sqlite3_errmsg(db) : "no memory", todo);
}

static int runSql(sqlite3 *db, const char *sql, char *why, size_t size)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    describeError(db, "the file cannot be written", why, size);
    return -1;
}

/* The number that a query gives; 0 if it gives none, -1: "why" says what is wrong. */
static int64_t queryNumber(sqlite3 *db, const char *sql, char *why, size_t size)
{
    sqlite3_stmt *stmt = NULL;
    int64_t n = -1;
    int status = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    if (status == SQLITE_OK)
        status = sqlite3_step(stmt);
    if (status == SQLITE_ROW)
        n = sqlite3_column_int64(stmt, 0);
    else if (status == SQLITE_DONE)
        n = 0;
    else
        describeError(db, "the file cannot be read", why, size);
    sqlite3_finalize(stmt);
    return n;
}

/* Accepts an empty file, and one that has our application_id. 0, or -1: "why" says what is wrong. */
static int checkOwner(sqlite3 *db, char *why, size_t size)
{
    int64_t tables = queryNumber(db, "SELECT count(*) FROM sqlite_master", why, size);
    int64_t owner = tables < 0 ? -1 : queryNumber(db, "PRAGMA application_id", why, size);
    int64_t version = owner < 0 ? -1 : queryNumber(db, "PRAGMA user_version", why, size);

    if (version < 0)
        return -1;
    if ((tables && owner != APPLICATION) || version > VERSION) {
        snprintf(why, size, "%s. Choose another file", tables && owner != APPLICATION ?
                 "this is the database of another program" : "a newer release of ebpfMon wrote it");
        return -1;
    }
    return 0;
}

static int prepareWriter(ebpfMonHistoryStore *s, unsigned megabytes, char *why, size_t size)
{
    char sql[200];

    if (queryNumber(s->db, "PRAGMA user_version", why, size) == 1 && runSql(s->db, newColumns, why, size)) {
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    s->pagesMost = (uint64_t)megabytes * (1048576u / PAGE_BYTES);
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION, VERSION);
    return runSql(s->db, "PRAGMA journal_mode = WAL", why, size) ||
           runSql(s->db, "PRAGMA synchronous = NORMAL", why, size) || runSql(s->db, schema, why, size) ||
           runSql(s->db, sql, why, size) ? -1 : 0;
}

static int countRows(ebpfMonHistoryStore *s, char *why, size_t size)
{
    for (int a = 0; a < 2; a++) {
        int64_t n = queryNumber(s->db, a ? "SELECT count(*) FROM rows WHERE automatic = 1" :
                                           "SELECT count(*) FROM rows WHERE automatic = 0", why, size);

        if (n < 0)
            return -1;
        s->count[a] = (uint64_t)n;
    }
    return 0;
}

ebpfMonHistoryStore *ebpfMonHistoryStoreOpen(const char *file, unsigned megabytes, unsigned days, char *why,
                                             size_t size)
{
    ebpfMonHistoryStore *s = calloc(1, sizeof(*s));
    struct stat st;
    int fd, i = 0;

    if (!s) {
        snprintf(why, size, "no memory");
        return NULL;
    }
    s->keepNs = days * DAY_NS;
    fd = ebpfMonOwnFileOpen(file, &st, why, size);
    if (fd < 0) {
        free(s);
        return NULL;
    }
    close(fd);
    if (sqlite3_open_v2(file, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK) {
        describeError(s->db, "the file cannot be opened", why, size);
        ebpfMonHistoryStoreClose(s);
        return NULL;
    }
    sqlite3_busy_timeout(s->db, BUSY_MS);
    if (checkOwner(s->db, why, size) || prepareWriter(s, megabytes, why, size) || countRows(s, why, size)) {
        ebpfMonHistoryStoreClose(s);
        return NULL;
    }
    while (i < sqlStatements && sqlite3_prepare_v2(s->db, statements[i], -1, &s->stmt[i], NULL) == SQLITE_OK)
        i++;
    if (i == sqlStatements)
        return s;
    describeError(s->db, "the file does not have the tables of ebpfMon", why, size);
    ebpfMonHistoryStoreClose(s);
    return NULL;
}

int ebpfMonHistoryStoreFinish(ebpfMonHistoryStore *s, char *why, size_t size)
{
    return runSql(s->db, "PRAGMA journal_mode = DELETE", why, size);
}

void ebpfMonHistoryStoreClose(ebpfMonHistoryStore *s)
{
    if (!s)
        return;
    for (int i = 0; i < sqlStatements; i++)
        sqlite3_finalize(s->stmt[i]);
    sqlite3_close(s->db);
    free(s);
}

sqlite3 *ebpfMonHistoryStoreOpenReader(const char *file, char *why, size_t size)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(db, BUSY_MS);
        if (checkOwner(db, why, size) == 0)
            return db;
    } else {
        describeError(db, "the file cannot be opened", why, size);
    }
    sqlite3_close(db);
    return NULL;
}

/* Runs a statement that returns no rows. 0, or -1: "why" says what is wrong, and the transaction is undone. */
static int runStatement(ebpfMonHistoryStore *s, int which, char *why, size_t size)
{
    int status = sqlite3_step(s->stmt[which]);

    if (status != SQLITE_DONE)
        describeError(s->db, "the file cannot be written", why, size);
    sqlite3_reset(s->stmt[which]);
    if (status == SQLITE_DONE)
        return 0;
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

/* SQLite goes on with its own pages if another program removes the file; what it writes then is lost at the end. */
static int checkUnchanged(ebpfMonHistoryStore *s, char *why, size_t size)
{
    int isMoved = 0;

    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &isMoved) != SQLITE_OK || !isMoved)
        return 0;
    snprintf(why, size, "somebody has moved or removed the file. A new one is begun");
    return -1;
}

int ebpfMonHistoryStoreBegin(ebpfMonHistoryStore *s, char *why, size_t size)
{
    s->added[0] = s->added[1] = 0;
    return checkUnchanged(s, why, size) || runSql(s->db, "BEGIN IMMEDIATE", why, size) ? -1 : 0;
}

static void bindText(sqlite3_stmt *stmt, int at, const char *text)
{
    if (text && text[0])
        sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC); /* it stays until the step */
    else
        sqlite3_bind_null(stmt, at);
}

void ebpfMonHistoryRowList(ebpfMonHistoryRow *row, const char **list[EBPFMON_HISTORY_TEXTS])
{
    const char **const texts[EBPFMON_HISTORY_TEXTS] = {
        &row->ioc, &row->pv, &row->value, &row->old, &row->user, &row->host, &row->peer, &row->who, &row->origin,
        &row->result, &row->reason, &row->chain, &row->source, &row->steps, &row->tree,
    };

    memcpy(list, texts, sizeof(texts));
}

int ebpfMonHistoryStoreAdd(ebpfMonHistoryStore *s, const ebpfMonHistoryRow *row, char *why, size_t size)
{
    const char **text[EBPFMON_HISTORY_TEXTS];
    ebpfMonHistoryRow copy = *row;
    sqlite3_stmt *stmt = s->stmt[sqlAdd];

    ebpfMonHistoryRowList(&copy, text);
    sqlite3_bind_int64(stmt, 1, (int64_t)row->time);
    bindText(stmt, 2, row->kind);
    sqlite3_bind_int(stmt, 3, row->automatic);
    for (int i = 0; i < EBPFMON_HISTORY_TEXTS; i++)
        bindText(stmt, i < TEXTS_BEFORE ? 4 + i : 8 + i, *text[i]);
    sqlite3_bind_int64(stmt, 15, (int64_t)row->n);
    sqlite3_bind_int64(stmt, 16, (int64_t)row->first);
    if (row->isNumber) {
        sqlite3_bind_double(stmt, 17, row->least);
        sqlite3_bind_double(stmt, 18, row->most);
    } else {
        sqlite3_bind_null(stmt, 17);
        sqlite3_bind_null(stmt, 18);
    }
    s->added[!!row->automatic]++;
    return runStatement(s, sqlAdd, why, size);
}

static int setMeta(ebpfMonHistoryStore *s, const char *key, int64_t value, char *why, size_t size)
{
    bindText(s->stmt[sqlMeta], 1, key);
    sqlite3_bind_int64(s->stmt[sqlMeta], 2, value);
    return runStatement(s, sqlMeta, why, size);
}

/* Removes the oldest rows of this kind; before "time", if that is not 0. */
static int forgetRows(ebpfMonHistoryStore *s, int automatic, uint64_t time, char *why, size_t size)
{
    int which = time ? sqlForgetOld : sqlForget;
    uint64_t gone;

    sqlite3_bind_int(s->stmt[which], 1, automatic);
    sqlite3_bind_int(s->stmt[which], 2, CHUNK);
    if (time)
        sqlite3_bind_int64(s->stmt[which], 3, (int64_t)time);
    if (runStatement(s, which, why, size))
        return -1;
    gone = (uint64_t)sqlite3_changes(s->db);
    s->count[automatic] -= gone < s->count[automatic] ? gone : s->count[automatic];
    return 0;
}

/* Whose rows are more gives up the oldest ones, so each kind can have half of the file. */
static int makeRoom(ebpfMonHistoryStore *s, uint64_t now, char *why, size_t size)
{
    int64_t used = queryNumber(s->db, "PRAGMA page_count", why, size) -
                   queryNumber(s->db, "PRAGMA freelist_count", why, size);

    for (int a = 0; s->keepNs && now > s->keepNs && a < 2; a++)
        if (forgetRows(s, a, now - s->keepNs, why, size))
            return -1;
    while (used >= 0 && (uint64_t)used > s->pagesMost - s->pagesMost / 16 && s->count[0] + s->count[1] > 2 * CHUNK) {
        if (forgetRows(s, s->count[1] >= s->count[0], 0, why, size))
            return -1;
        used = queryNumber(s->db, "PRAGMA page_count", why, size) -
               queryNumber(s->db, "PRAGMA freelist_count", why, size);
    }
    return 0;
}

int ebpfMonHistoryStoreEnd(ebpfMonHistoryStore *s, uint64_t now, int isStop, char *why, size_t size)
{
    for (int a = 0; a < 2; a++)
        s->count[a] += s->added[a];
    if (setMeta(s, "alive", (int64_t)now, why, size) || setMeta(s, "stopped", isStop, why, size) ||
        makeRoom(s, now, why, size))
        return -1;
    if (runSql(s->db, "COMMIT", why, size) == 0)
        return 0;
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

uint64_t ebpfMonHistoryStoreGetAlive(ebpfMonHistoryStore *s, int *isStopped)
{
    char why[100];
    int64_t alive = queryNumber(s->db, "SELECT value FROM meta WHERE key = 'alive'", why, sizeof(why));

    *isStopped = queryNumber(s->db, "SELECT value FROM meta WHERE key = 'stopped'", why, sizeof(why)) == 1;
    return alive > 0 ? (uint64_t)alive : 0;
}

uint64_t ebpfMonHistoryStoreCount(const ebpfMonHistoryStore *s)
{
    return s->count[0] + s->count[1];
}

/* --- a row in a queue --- */

#define KIND_AND_TEXTS (1 + EBPFMON_HISTORY_TEXTS)

/* Followed by the texts, each with its 0. */
typedef struct {
    uint64_t time;
    int32_t  automatic, isNumber;
    double   number;
} packedHead;

size_t ebpfMonHistoryRowPack(uint64_t time, int automatic, const char *const text[KIND_AND_TEXTS],
                             uint8_t buf[EBPFMON_HISTORY_PACKED])
{
    packedHead head = { .time = time, .automatic = automatic };
    size_t used = sizeof(head);
    char *end;

    if (automatic && text[3] && text[3][0] && strcmp(text[0], "put") == 0) {
        head.number = strtod(text[3], &end);
        head.isNumber = !*end;
    }
    memcpy(buf, &head, sizeof(head));
    for (int i = 0; i < KIND_AND_TEXTS; i++) {
        size_t length = text[i] ? strlen(text[i]) : 0;
        size_t room = EBPFMON_HISTORY_PACKED - used - (size_t)(KIND_AND_TEXTS - i);

        if (length > room)
            length = room;
        memcpy(buf + used, text[i] ? text[i] : "", length);
        buf[used + length] = 0;
        used += length + 1;
    }
    return used;
}

void ebpfMonHistoryRowUnpack(const uint8_t *at, ebpfMonHistoryRow *row)
{
    const char *p = (const char *)at + sizeof(packedHead), **text[EBPFMON_HISTORY_TEXTS];
    packedHead head;

    memcpy(&head, at, sizeof(head));
    *row = (ebpfMonHistoryRow){
        .time = head.time, .first = head.time, .kind = p, .automatic = head.automatic, .n = 1,
        .isNumber = head.isNumber, .least = head.number, .most = head.number,
    };
    ebpfMonHistoryRowList(row, text);
    for (int i = 0; i < EBPFMON_HISTORY_TEXTS; i++) {
        p += strlen(p) + 1;
        *text[i] = p;
    }
}
