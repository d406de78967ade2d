/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of rows that were removed are used again, so the file keeps its size and needs no VACUUM. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "history/historyStore.h"
#include "history/historyTar.h"
#include "shared/sqliteFile.h"

#define CHUNK       2000 /* rows that are removed at once … */
#define CHUNKS      8    /* … and so often in one transaction, so that it stays short: more than it can add */
#define ROW_BYTES   100  /* of a row without its texts, with its places in the indices */
#define AGE_TIMES   8    /* rows are removed for their age so much faster than they came, and no faster: a clock that is
                          * years ahead for an hour costs two of a hundred rows */
#define SETTLE_NS   30000000000ull /* from the file beside it into the file */
#define ROOM_PAGES  400  /* that a transaction may need, at least */
#define WAL_LEAST   (4u << 20) /* bytes that the file beside it may have in any case */
#define ASLEEP_NS   "90000000000" /* a monitor that runs writes at least each 30 s */
#define DAY_NS      86400000000000ull
#define TEXTS_BEFORE 11 /* texts of a row that stand before its numbers */

#define COLUMNS "time, kind, automatic, ioc, pv, value, old, user, host, peer, who, origin, result, reason, n, " \
                "first, least, most, chain, source, steps, tree, trace, hash"

#define OLDEST "SELECT id FROM rows WHERE automatic = ?1 AND time < ?3 ORDER BY time LIMIT ?2"

/* As sizeRow. */
#define SIZE_OF(column) "coalesce(length(CAST(" #column " AS BLOB)), 0) + "
#define ROW_SIZE SIZE_OF(ioc) SIZE_OF(pv) SIZE_OF(value) SIZE_OF(old) SIZE_OF(user) SIZE_OF(host) SIZE_OF(peer) \
                 SIZE_OF(who) SIZE_OF(origin) SIZE_OF(result) SIZE_OF(reason) SIZE_OF(chain) SIZE_OF(source) \
                 SIZE_OF(steps) SIZE_OF(tree) SIZE_OF(trace) SIZE_OF(hash) "100"

#define VERSION 4
static const ebpfMonSqliteKind kind = { 0x65426d48 /* "eBmH" */, VERSION,
                                        ". Free space on the disk" };

enum { sqlAdd, sqlMeta, sqlSize, sqlForget, sqlStatements };

static const char *const statements[sqlStatements] = {
    [sqlAdd] = "INSERT INTO rows (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, "
               "?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
    [sqlMeta] = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)",
    [sqlSize] = "SELECT sum(" ROW_SIZE ") FROM rows WHERE id IN (" OLDEST ")",
    [sqlForget] = "DELETE FROM rows WHERE id IN (" OLDEST ")",
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL, "
    "automatic INTEGER NOT NULL, ioc TEXT, pv TEXT, value TEXT, old TEXT, user TEXT, host TEXT, peer TEXT, who TEXT, "
    "origin TEXT, result TEXT, reason TEXT, n INTEGER NOT NULL, first INTEGER NOT NULL, least REAL, most REAL, "
    "chain TEXT, source TEXT, steps TEXT, tree TEXT, trace TEXT, hash TEXT);"
    "CREATE INDEX IF NOT EXISTS rowsByTime ON rows (automatic, time);"
    "CREATE INDEX IF NOT EXISTS rowsByPv ON rows (pv, time);"
    "CREATE INDEX IF NOT EXISTS rowsByUser ON rows (user, time) WHERE user IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS gapsByTime ON rows (time) WHERE kind IN ('gap', 'lost');"
    "CREATE INDEX IF NOT EXISTS rowsByChain ON rows (chain) WHERE chain IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS rowsBySource ON rows (source) WHERE source IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS rowsByTrace ON rows (trace) WHERE trace IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS unexpectedByTime ON rows (time) WHERE reason IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS failedByTime ON rows (time) WHERE " EBPFMON_HISTORY_FAILED ";"
    /* a query that uses this one must have the same condition */
    "CREATE INDEX IF NOT EXISTS rowsByKind ON rows (kind, time) WHERE kind <> 'put';"
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;";

/* Of earlier versions: how a file becomes one of the next version, and how rows of such a file are read. */
static const char *const newColumns[VERSION] = { NULL,
    "BEGIN IMMEDIATE; ALTER TABLE rows ADD COLUMN chain TEXT; ALTER TABLE rows ADD COLUMN source TEXT;"
    "ALTER TABLE rows ADD COLUMN steps TEXT; ALTER TABLE rows ADD COLUMN tree TEXT; PRAGMA user_version = 2; COMMIT",
    "BEGIN IMMEDIATE; ALTER TABLE rows ADD COLUMN trace TEXT; PRAGMA user_version = 3; COMMIT",
    "BEGIN IMMEDIATE; ALTER TABLE rows ADD COLUMN hash TEXT; PRAGMA user_version = 4; COMMIT" };
static const char *const oldRows[VERSION] = { NULL,
    "CREATE TEMP VIEW rows AS SELECT *, NULL AS chain, NULL AS source, NULL AS steps, NULL AS tree, NULL AS trace, "
    "NULL AS hash FROM main.rows",
    "CREATE TEMP VIEW rows AS SELECT *, NULL AS trace, NULL AS hash FROM main.rows",
    "CREATE TEMP VIEW rows AS SELECT *, NULL AS hash FROM main.rows" };

struct ebpfMonHistoryStore {
    ebpfMonSqlite file;
    sqlite3_stmt *stmt[sqlStatements];
    uint64_t count[2];     /* rows of people, and automatic ones, with those of this transaction */
    int64_t  bytes[2];     /* of them */
    double   mayForget[2]; /* rows that may be removed for their age now */
    uint64_t forgotAt, settledAt; /* monotonic ns */
    uint64_t pagesMost, keepNs, walMost;
};

/* 0: the file is new. */
static int getVersion(const ebpfMonSqlite *file)
{
    char why[100];

    return (int)ebpfMonSqliteGetNumber(file, "PRAGMA user_version", why, sizeof(why));
}

static int prepareWriter(ebpfMonHistoryStore *s, unsigned megabytes, char *why, size_t size)
{
    char sql[80];

    for (int v = getVersion(&s->file); v > 0 && v < VERSION; v++)
        if (ebpfMonSqliteRun(&s->file, newColumns[v], why, size)) {
            sqlite3_exec(s->file.db, "ROLLBACK", NULL, NULL, NULL);
            return -1;
        }
    s->pagesMost = (uint64_t)megabytes * (1048576u / EBPFMON_SQLITE_PAGE);
    s->walMost = ((uint64_t)megabytes << 20) / 4;
    if (s->walMost < WAL_LEAST)
        s->walMost = WAL_LEAST;
    snprintf(sql, sizeof(sql), "PRAGMA journal_size_limit = %llu", (unsigned long long)s->walMost);
    return ebpfMonSqliteMake(&s->file, schema, why, size) || ebpfMonSqliteRun(&s->file, sql, why, size) ? -1 : 0;
}

static const char *const bytesKeys[2] = { "bytesOfPeople", "bytesAutomatic" };

/* The bytes of rows are in "meta". A file of an earlier release does not have them, and is read once. */
static int countRows(ebpfMonHistoryStore *s, char *why, size_t size)
{
    for (int a = 0; a < 2; a++) {
        char sql[2500];
        int64_t n = ebpfMonSqliteGetNumber(&s->file, a ? "SELECT count(*) FROM rows WHERE automatic = 1" :
                                           "SELECT count(*) FROM rows WHERE automatic = 0", why, size);

        snprintf(sql, sizeof(sql), "SELECT coalesce((SELECT value FROM meta WHERE key = '%s'), (SELECT sum(" ROW_SIZE
                 ") FROM rows WHERE automatic = %d), 0)", bytesKeys[a], a);
        s->bytes[a] = n < 0 ? -1 : ebpfMonSqliteGetNumber(&s->file, sql, why, size);
        if (s->bytes[a] < 0)
            return -1;
        s->count[a] = (uint64_t)n;
    }
    return 0;
}

ebpfMonHistoryStore *ebpfMonHistoryStoreOpen(const char *file, unsigned megabytes, unsigned days, char *why,
                                             size_t size)
{
    ebpfMonHistoryStore *s = calloc(1, sizeof(*s));

    if (!s) {
        snprintf(why, size, "no memory");
        return NULL;
    }
    s->keepNs = days * DAY_NS;
    s->forgotAt = ebpfMonClockMonotonic();
    if (ebpfMonSqliteLock(&s->file, file, why, size) == 0 &&
        ebpfMonSqliteOpen(&s->file, &kind, file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, why, size) == 0 &&
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

/* Nonzero: all of the history is in the file itself. */
static int isAlone(const char *file)
{
    char path[600];
    struct stat st;

    snprintf(path, sizeof(path), "%s-shm", file);
    if (access(path, F_OK) == 0) /* a monitor may write it now */
        return 0;
    snprintf(path, sizeof(path), "%s-wal", file);
    return stat(path, &st) != 0 || st.st_size == 0;
}

/* The name as a URI, which says that nobody changes the file. */
static void nameUnchanged(const char *file, char *uri, size_t size)
{
    size_t used = (size_t)snprintf(uri, size, "file:");

    for (const char *c = file; *c && used + 24 < size; c++)
        used += (size_t)snprintf(uri + used, size - used, strchr("%?#", *c) ? "%%%02x" : "%c", (unsigned char)*c);
    snprintf(uri + used, size - used, "?immutable=1");
}

/* Of the times that a question is about: when nobody watched, and what this file does not have. Around an aggregate a
 * condition would make SQLite read the whole index. */
static const char gaps[] =
    "CREATE TEMP TABLE gaps AS SELECT * FROM rows WHERE kind IN ('gap', 'lost');"
    "INSERT INTO gaps (time, kind, automatic, value, n, first) SELECT now, 'gap', 0, 'this file has nothing later', 1, "
    "value FROM meta, (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000000 AS now) "
    "WHERE key = 'alive' AND value < now - " ASLEEP_NS ";"
    "INSERT INTO gaps (time, kind, automatic, value, n, first) SELECT t, 'gap', 0, 'nothing older is kept', 1, 0 "
    "FROM (SELECT (SELECT min(time) FROM rows WHERE automatic = 0) AS t) WHERE t IS NOT NULL;"
    "INSERT INTO gaps (time, kind, automatic, value, n, first) SELECT t, 'gap', 1, "
    "'nothing older is kept of what IOCs did by themselves', 1, 0 "
    "FROM (SELECT (SELECT min(time) FROM rows WHERE automatic = 1) AS t) "
    "WHERE t > (SELECT min(time) FROM rows WHERE automatic = 0);";

int ebpfMonHistoryStoreIsOld(sqlite3 *db)
{
    int version = getVersion(&(ebpfMonSqlite){ db, &kind });

    return version > 0 && version < VERSION;
}

/* SQLite makes a file beside that of the history, even to read it. A copy in a folder where we may not write is read
 * without. */
static sqlite3 *openReader(const char *file, int mayChange, char *why, size_t size)
{
    char uri[1000];

    nameUnchanged(file, uri, sizeof(uri));
    for (int unchanged = !mayChange; unchanged <= isAlone(file); unchanged++) {
        ebpfMonSqlite reader = { NULL, &kind };
        int flags = SQLITE_OPEN_READONLY | (unchanged ? SQLITE_OPEN_URI : 0);

        if (ebpfMonSqliteOpen(&reader, &kind, unchanged ? uri : file, flags, why, size) == 0) {
            int64_t tables = ebpfMonSqliteGetNumber(&reader, "SELECT count(*) FROM sqlite_master", why, size);

            if (tables == 0)
                snprintf(why, size, "the file is empty. If it is a copy of a file that a monitor writes: make it with "
                         "sqlite3 .backup");
            else if (tables > 0 && (!ebpfMonHistoryStoreIsOld(reader.db) ||
                     sqlite3_exec(reader.db, oldRows[getVersion(&reader)], NULL, NULL, NULL) == SQLITE_OK) &&
                     sqlite3_exec(reader.db, gaps, NULL, NULL, NULL) == SQLITE_OK)
                return reader.db;
            else if (tables > 0)
                ebpfMonHistoryStoreDescribe(reader.db, why, size);
        }
        ebpfMonSqliteClose(&reader, NULL, 0);
    }
    return NULL;
}

sqlite3 *ebpfMonHistoryStoreOpenReader(const char *file, char *why, size_t size)
{
    char copy[600];
    int isNoTar = ebpfMonHistoryTarCopy(file, copy, sizeof(copy), why, size);
    sqlite3 *db;

    if (isNoTar)
        return isNoTar < 0 ? NULL : openReader(file, 1, why, size);
    db = openReader(copy, 0, why, size);
    unlink(copy); /* it is open */
    return db;
}

void ebpfMonHistoryStoreDescribe(sqlite3 *db, char *why, size_t size)
{
    snprintf(why, size, "the file cannot be read: %s%s", sqlite3_errmsg(db), sqlite3_errcode(db) == SQLITE_CORRUPT ?
             ". If it was copied while a monitor wrote it: copy it with sqlite3 .backup" : "");
}

/* Runs a statement that returns no rows. 0, or -1: "why" says what is wrong, and the transaction is undone. */
static int runStatement(ebpfMonHistoryStore *s, int which, char *why, size_t size)
{
    int status = sqlite3_step(s->stmt[which]);

    if (status != SQLITE_DONE)
        ebpfMonSqliteDescribe(&s->file, "not written", why, size);
    sqlite3_reset(s->stmt[which]);
    if (status == SQLITE_DONE)
        return 0;
    if (!sqlite3_get_autocommit(s->file.db))
        sqlite3_exec(s->file.db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

/* While another program reads, the file beside ours (-wal) cannot begin anew, and grows. If somebody has removed it,
 * nobody can read what is written now. */
static int checkBeside(ebpfMonHistoryStore *s, char *why, size_t size)
{
    char path[600];
    struct stat st;

    snprintf(path, sizeof(path), "%s-wal", sqlite3_db_filename(s->file.db, "main"));
    if (stat(path, &st)) {
        snprintf(why, size, "somebody has removed %s. The file is opened again", path);
        return -1;
    }
    if ((uint64_t)st.st_size <= s->walMost ||
        sqlite3_wal_checkpoint_v2(s->file.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) == SQLITE_OK)
        return 0;
    snprintf(why, size, "another program reads the file for so long that %s has %llu MB: end it (fuser %s)", path,
             (unsigned long long)st.st_size >> 20, path);
    return -1;
}

int ebpfMonHistoryStoreBegin(ebpfMonHistoryStore *s, char *why, size_t size)
{
    return ebpfMonSqliteCheckUnchanged(&s->file, why, size) || checkBeside(s, why, size) ||
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
        &row->result, &row->reason, &row->chain, &row->source, &row->steps, &row->tree, &row->trace, &row->hash,
    };

    memcpy(list, texts, sizeof(texts));
}

static int64_t sizeRow(const char **text[EBPFMON_HISTORY_TEXTS])
{
    size_t bytes = ROW_BYTES;

    for (int i = 0; i < EBPFMON_HISTORY_TEXTS; i++)
        bytes += *text[i] ? strlen(*text[i]) : 0;
    return (int64_t)bytes;
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
    s->count[!!row->automatic]++;
    s->bytes[!!row->automatic] += sizeRow(text);
    return runStatement(s, sqlAdd, why, size);
}

static int setMeta(ebpfMonHistoryStore *s, const char *key, int64_t value, char *why, size_t size)
{
    bindText(s->stmt[sqlMeta], 1, key);
    sqlite3_bind_int64(s->stmt[sqlMeta], 2, value);
    return runStatement(s, sqlMeta, why, size);
}

/* Removes the oldest rows of this kind that are older than "time": "most", or less. Returns how many; -1: "why" says
 * what is wrong. */
static int64_t forgetRows(ebpfMonHistoryStore *s, int automatic, uint64_t time, uint64_t most, char *why, size_t size)
{
    int64_t gone, bytes;

    for (int i = sqlSize; i <= sqlForget; i++) {
        sqlite3_bind_int(s->stmt[i], 1, automatic);
        sqlite3_bind_int64(s->stmt[i], 2, most < CHUNK ? (int64_t)most : CHUNK);
        sqlite3_bind_int64(s->stmt[i], 3, time < INT64_MAX ? (int64_t)time : INT64_MAX);
    }
    bytes = sqlite3_step(s->stmt[sqlSize]) == SQLITE_ROW ? sqlite3_column_int64(s->stmt[sqlSize], 0) : 0;
    sqlite3_reset(s->stmt[sqlSize]);
    if (runStatement(s, sqlForget, why, size))
        return -1;
    gone = sqlite3_changes(s->file.db);
    s->count[automatic] -= (uint64_t)gone < s->count[automatic] ? (uint64_t)gone : s->count[automatic];
    s->bytes[automatic] = s->bytes[automatic] > bytes ? s->bytes[automatic] - bytes : 0;
    return gone;
}

static int forgetOldRows(ebpfMonHistoryStore *s, uint64_t now, char *why, size_t size)
{
    uint64_t clock = ebpfMonClockMonotonic();

    for (int a = 0; s->keepNs && now > s->keepNs && a < 2; a++) {
        int64_t gone = 0;

        s->mayForget[a] += (double)(clock - s->forgotAt) / (double)s->keepNs * AGE_TIMES * (double)s->count[a];
        if (s->mayForget[a] > (double)s->count[a] / 100 + 1)
            s->mayForget[a] = (double)s->count[a] / 100 + 1;
        if (s->mayForget[a] >= 1)
            gone = forgetRows(s, a, now - s->keepNs, (uint64_t)s->mayForget[a], why, size);
        if (gone < 0)
            return -1;
        s->mayForget[a] -= (double)gone;
    }
    s->forgotAt = clock;
    return 0;
}

/* Whose rows take more room gives up the oldest ones, so each kind can have half of the file. A bound that was lowered
 * is reached in many transactions. */
static int makeRoom(ebpfMonHistoryStore *s, char *why, size_t size)
{
    uint64_t room = s->pagesMost / 16 > ROOM_PAGES ? s->pagesMost / 16 : ROOM_PAGES;

    for (int i = 0; i < CHUNKS && ebpfMonSqliteCountPages(&s->file, why, size) > (int64_t)(s->pagesMost - room); i++) {
        int a = s->bytes[1] >= s->bytes[0];

        if (forgetRows(s, a, UINT64_MAX, s->count[a] / 8 + 1, why, size) < 0)
            return -1;
    }
    return 0;
}

int ebpfMonHistoryStoreEnd(ebpfMonHistoryStore *s, uint64_t now, int isStop, char *why, size_t size)
{
    if (forgetOldRows(s, now, why, size) || makeRoom(s, why, size) ||
        setMeta(s, "alive", (int64_t)now, why, size) || setMeta(s, "stopped", isStop, why, size) ||
        setMeta(s, bytesKeys[0], s->bytes[0], why, size) || setMeta(s, bytesKeys[1], s->bytes[1], why, size))
        return -1;
    if (ebpfMonSqliteRun(&s->file, "COMMIT", why, size)) {
        sqlite3_exec(s->file.db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    if (ebpfMonClockMonotonic() - s->settledAt > SETTLE_NS) { /* who copies the file alone has all but the last rows */
        s->settledAt = ebpfMonClockMonotonic();
        sqlite3_wal_checkpoint_v2(s->file.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
    return 0;
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
        head.isNumber = !*end && !isnan(head.number); /* there is no smallest one then */
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
    if (strcmp(row->kind, "lost") == 0) { /* how many, and in how many ns (historyMinutes.c) */
        char *end;

        row->n = strtoull(row->value, &end, 10);
        row->first -= strtoull(end, &end, 10);
        row->value = end + (*end == ' ');
    }
}
