/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of rows that were removed are used again, so the file keeps its size and needs no VACUUM. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "history/historyStore.h"
#include "sqliteFile.h"

#define CHUNK       2000 /* rows that one transaction removes at most, so that it stays short */
#define DAY_NS      86400000000000ull
#define TEXTS_BEFORE 11 /* texts of a row that stand before its numbers */

#define COLUMNS "time, kind, automatic, ioc, pv, value, old, user, host, peer, who, origin, result, reason, n, " \
                "first, least, most, chain, source, steps, tree"

/* Version 1: without chain, source, steps, tree. */
static const ebpfMonSqliteKind kind = { 0x65426d48 /* "eBmH" */, 2,
                                        ". Free space on the disk; it is tried again by itself" };

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
    ebpfMonSqlite file;
    sqlite3_stmt *stmt[sqlStatements];
    uint64_t count[2]; /* rows of people, and automatic ones */
    uint64_t added[2]; /* … in this transaction */
    uint64_t pagesMost, keepNs;
};

static int prepareWriter(ebpfMonHistoryStore *s, unsigned megabytes, char *why, size_t size)
{
    if (ebpfMonSqliteGetNumber(&s->file, "PRAGMA user_version", why, size) == 1 &&
        ebpfMonSqliteRun(&s->file, newColumns, why, size)) {
        sqlite3_exec(s->file.db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    s->pagesMost = (uint64_t)megabytes * (1048576u / EBPFMON_SQLITE_PAGE);
    return ebpfMonSqliteMake(&s->file, schema, why, size);
}

static int countRows(ebpfMonHistoryStore *s, char *why, size_t size)
{
    for (int a = 0; a < 2; a++) {
        int64_t n = ebpfMonSqliteGetNumber(&s->file, a ? "SELECT count(*) FROM rows WHERE automatic = 1" :
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
    int fd;

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
    if (ebpfMonSqliteOpen(&s->file, &kind, file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, why, size) == 0 &&
        prepareWriter(s, megabytes, why, size) == 0 && countRows(s, why, size) == 0 &&
        ebpfMonSqlitePrepare(&s->file, statements, s->stmt, sqlStatements, why, size) == 0)
        return s;
    ebpfMonHistoryStoreClose(s);
    return NULL;
}

int ebpfMonHistoryStoreFinish(ebpfMonHistoryStore *s, char *why, size_t size)
{
    return ebpfMonSqliteRun(&s->file, "PRAGMA journal_mode = DELETE", why, size);
}

void ebpfMonHistoryStoreClose(ebpfMonHistoryStore *s)
{
    if (!s)
        return;
    ebpfMonSqliteClose(&s->file, s->stmt, sqlStatements);
    free(s);
}

sqlite3 *ebpfMonHistoryStoreOpenReader(const char *file, char *why, size_t size)
{
    ebpfMonSqlite reader = { NULL, &kind };

    if (ebpfMonSqliteOpen(&reader, &kind, file, SQLITE_OPEN_READONLY, why, size) == 0)
        return reader.db;
    ebpfMonSqliteClose(&reader, NULL, 0);
    return NULL;
}

/* Runs a statement that returns no rows. 0, or -1: "why" says what is wrong, and the transaction is undone. */
static int runStatement(ebpfMonHistoryStore *s, int which, char *why, size_t size)
{
    int status = sqlite3_step(s->stmt[which]);

    if (status != SQLITE_DONE)
        ebpfMonSqliteDescribe(&s->file, "the file cannot be written", why, size);
    sqlite3_reset(s->stmt[which]);
    if (status == SQLITE_DONE)
        return 0;
    if (!sqlite3_get_autocommit(s->file.db))
        sqlite3_exec(s->file.db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

int ebpfMonHistoryStoreBegin(ebpfMonHistoryStore *s, char *why, size_t size)
{
    s->added[0] = s->added[1] = 0;
    return ebpfMonSqliteCheckMoved(&s->file, why, size) ||
           ebpfMonSqliteRun(&s->file, "BEGIN IMMEDIATE", why, size) ? -1 : 0;
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
    gone = (uint64_t)sqlite3_changes(s->file.db);
    s->count[automatic] -= gone < s->count[automatic] ? gone : s->count[automatic];
    return 0;
}

/* Whose rows are more gives up the oldest ones, so each kind can have half of the file. */
static int makeRoom(ebpfMonHistoryStore *s, uint64_t now, char *why, size_t size)
{
    int64_t used = ebpfMonSqliteCountPages(&s->file, why, size);

    for (int a = 0; s->keepNs && now > s->keepNs && a < 2; a++)
        if (forgetRows(s, a, now - s->keepNs, why, size))
            return -1;
    while (used >= 0 && (uint64_t)used > s->pagesMost - s->pagesMost / 16 && s->count[0] + s->count[1] > 2 * CHUNK) {
        if (forgetRows(s, s->count[1] >= s->count[0], 0, why, size))
            return -1;
        used = ebpfMonSqliteCountPages(&s->file, why, size);
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
    if (ebpfMonSqliteRun(&s->file, "COMMIT", why, size) == 0)
        return 0;
    sqlite3_exec(s->file.db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

uint64_t ebpfMonHistoryStoreGetAlive(ebpfMonHistoryStore *s, int *isStopped)
{
    char why[100];
    int64_t alive = ebpfMonSqliteGetNumber(&s->file, "SELECT value FROM meta WHERE key = 'alive'", why, sizeof(why));

    *isStopped = ebpfMonSqliteGetNumber(&s->file, "SELECT value FROM meta WHERE key = 'stopped'", why,
                                        sizeof(why)) == 1;
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
