/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash.h"
#include "history/historySums.h"

static const char tables[] =
    "PRAGMA temp_store = MEMORY;"
    "CREATE TEMP TABLE people (who TEXT, puts INTEGER, pvs INTEGER, first INTEGER, last INTEGER);"
    "CREATE TEMP TABLE changed (pv TEXT, before TEXT, after TEXT, puts INTEGER);"
    "CREATE TEMP TABLE links (pv TEXT, origin TEXT, before INTEGER, puts INTEGER);";

enum { atTime, atPv, atUser, atHost, atOld, atValue, atIsOk, atOrigin, atN };

static const char query[] =
    "SELECT time, pv, user, host, old, value, result = 'ok', origin, n FROM rows "
    "WHERE kind = 'put' AND automatic = ?1 AND time BETWEEN ?2 AND ?3 ORDER BY time";

/* What has the same key. Texts are malloc'ed; NULL: none. */
typedef struct {
    char    *key;
    uint64_t hash;
    int64_t  first, last;
    uint64_t puts, before, pvs;
    char    *old, *value;
    size_t   room;         /* of "value" */
} sum;

typedef struct {
    sum      *list;
    size_t    count, room;
    uint32_t *slot;        /* 1 + index; 0: free. Twice as many as the list has room, a power of two */
} sumTable;

/* Pairs of a person and a PV, as numbers that are not 0. */
typedef struct {
    uint64_t *slot;
    size_t    count, room; /* room: a power of two, or 0 */
} pairSet;

typedef struct {
    sumTable people, pvs, links;
    pairSet  pairs;
    int64_t  from, to;
    int      isFull;       /* there was no memory */
    ebpfMonHistorySums *sums;
} pass;

static int growTable(sumTable *t)
{
    size_t room = t->room;
    uint32_t *slot;

    if (ebpfMonArrayGrow(&t->list, &t->room, t->count + 1, 1024, sizeof(*t->list)))
        return -1;
    if (room == t->room)
        return 0;
    slot = calloc(2 * t->room, sizeof(*slot));
    if (!slot) {
        t->room = room;
        return -1;
    }
    for (size_t i = 0; i < t->count; i++) {
        size_t at = t->list[i].hash & (2 * t->room - 1);

        while (slot[at])
            at = (at + 1) & (2 * t->room - 1);
        slot[at] = (uint32_t)i + 1;
    }
    free(t->slot);
    t->slot = slot;
    return 0;
}

/* The sum of this key, which may be new. NULL without memory. */
static sum *findSum(pass *p, sumTable *t, const char *key)
{
    size_t length = strlen(key), at;
    uint64_t hash = ebpfMonHashMix(ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, key, length));
    sum *s;

    if (t->count == t->room && growTable(t)) {
        p->isFull = 1;
        return NULL;
    }
    for (at = hash & (2 * t->room - 1); t->slot[at]; at = (at + 1) & (2 * t->room - 1)) {
        s = &t->list[t->slot[at] - 1];
        if (s->hash == hash && strcmp(s->key, key) == 0)
            return s;
    }
    s = &t->list[t->count];
    *s = (sum){ .hash = hash, .key = strdup(key) };
    if (!s->key) {
        p->isFull = 1;
        return NULL;
    }
    t->slot[at] = (uint32_t)++t->count;
    return s;
}

static void freeTable(sumTable *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->list[i].key);
        free(t->list[i].old);
        free(t->list[i].value);
    }
    free(t->list);
    free(t->slot);
}

static void putPair(pairSet *set, uint64_t pair)
{
    size_t at = ebpfMonHashMix(pair) & (set->room - 1);

    while (set->slot[at] && set->slot[at] != pair)
        at = (at + 1) & (set->room - 1);
    set->count += !set->slot[at];
    set->slot[at] = pair;
}

/* Nonzero: it is new. */
static int addPair(pass *p, uint64_t pair)
{
    pairSet *set = &p->pairs, larger = { .room = set->room ? 2 * set->room : 4096 };
    size_t before = set->count;

    if (2 * set->count >= set->room) {
        larger.slot = calloc(larger.room, sizeof(*larger.slot));
        if (!larger.slot) {
            p->isFull = 1;
            return 0;
        }
        for (size_t i = 0; i < set->room; i++)
            if (set->slot[i])
                putPair(&larger, set->slot[i]);
        free(set->slot);
        *set = larger;
    }
    putPair(set, pair);
    return set->count > before;
}

static const char *getText(sqlite3_stmt *row, int at)
{
    const char *text = (const char *)sqlite3_column_text(row, at);

    return text ? text : "";
}

/* NULL stays NULL: it was not kept, or is not known. */
static void setValue(pass *p, sum *s, const char *text)
{
    size_t need = text ? strlen(text) + 1 : 0;

    if (!need) {
        free(s->value);
        s->value = NULL;
        s->room = 0;
        return;
    }
    if (ebpfMonArrayGrow(&s->value, &s->room, need, 16, 1))
        p->isFull = 1;
    else
        memcpy(s->value, text, need);
}

static void countPut(sum *s, int64_t time, uint64_t n)
{
    if (!s->puts)
        s->first = time;
    s->last = time;
    s->puts += n;
}

static void addOfPeople(pass *p, sqlite3_stmt *row, int64_t time, uint64_t n)
{
    const char *user = getText(row, atUser), *host = getText(row, atHost);
    char who[300];
    sum *pv, *person;
    int isFirst;

    snprintf(who, sizeof(who), "%s%s%s", user[0] ? user : "?", host[0] ? "@" : "", host);
    pv = findSum(p, &p->pvs, getText(row, atPv));
    person = findSum(p, &p->people, who);
    if (!pv || !person)
        return;
    countPut(person, time, n);
    person->pvs += (uint64_t)addPair(p, (uint64_t)(person - p->people.list) << 32 | (uint64_t)(pv - p->pvs.list + 1));
    if (!sqlite3_column_int(row, atIsOk))
        return;
    isFirst = !pv->puts;
    countPut(pv, time, n);
    if (isFirst && sqlite3_column_type(row, atOld) != SQLITE_NULL && !(pv->old = strdup(getText(row, atOld))))
        p->isFull = 1;
    setValue(p, pv, (const char *)sqlite3_column_text(row, atValue));
}

/* Who put what the link followed is another question. */
static void addOfLink(pass *p, sqlite3_stmt *row, int64_t time, uint64_t n)
{
    const char *origin = getText(row, atOrigin), *by = strstr(origin, ", put by ");
    char key[700];
    sum *s;

    snprintf(key, sizeof(key), "%s\n%.*s", getText(row, atPv), by ? (int)(by - origin) : 600, origin);
    s = findSum(p, &p->links, key);
    if (s && time < p->from)
        s->before += n;
    else if (s)
        countPut(s, time, n);
}

static int readPuts(pass *p, sqlite3 *db, int automatic, int64_t from)
{
    uint64_t *steps = automatic ? p->sums->automatic : p->sums->people;
    sqlite3_stmt *row;
    int status = sqlite3_prepare_v2(db, query, -1, &row, NULL);

    if (status != SQLITE_OK)
        return -1;
    sqlite3_bind_int(row, 1, automatic);
    sqlite3_bind_int64(row, 2, from);
    sqlite3_bind_int64(row, 3, p->to);
    while (!p->isFull && (status = sqlite3_step(row)) == SQLITE_ROW) {
        int64_t time = sqlite3_column_int64(row, atTime);
        uint64_t n = (uint64_t)sqlite3_column_int64(row, atN);

        if (time >= p->from)
            steps[(uint64_t)(time - p->from) / ((uint64_t)(p->to - p->from) / EBPFMON_HISTORY_STEPS + 1)] += n;
        if (automatic)
            addOfLink(p, row, time, n);
        else
            addOfPeople(p, row, time, n);
    }
    sqlite3_finalize(row);
    return status == SQLITE_DONE ? 0 : -1;
}

/* Runs it for each sum, of which it takes what it names: ?1 key, ?2 old, ?3 value, ?4 puts, ?5 before, ?6 PVs,
 * ?7 first, ?8 last. */
static int fill(sqlite3 *db, const char *sql, const sumTable *t)
{
    sqlite3_stmt *stmt;
    int status = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    for (size_t i = 0; i < t->count && (status == SQLITE_OK || status == SQLITE_DONE); i++) {
        const sum *s = &t->list[i];

        sqlite3_bind_text(stmt, 1, s->key, -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 2, s->old, -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 3, s->value, -1, SQLITE_STATIC);
        sqlite3_bind_int64(stmt, 4, (int64_t)s->puts);
        sqlite3_bind_int64(stmt, 5, (int64_t)s->before);
        sqlite3_bind_int64(stmt, 6, (int64_t)s->pvs); /* a number that the statement does not have does no harm */
        sqlite3_bind_int64(stmt, 7, s->first);
        sqlite3_bind_int64(stmt, 8, s->last);
        status = sqlite3_step(stmt);
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return status == SQLITE_OK || status == SQLITE_DONE ? 0 : -1;
}

static int fillTables(sqlite3 *db, const pass *p)
{
    return fill(db, "INSERT INTO people SELECT ?1, ?4, ?6, ?7, ?8", &p->people) ||
           fill(db, "INSERT INTO changed SELECT ?1, ?2, ?3, ?4 WHERE ?4 > 0 AND ?2 IS NOT ?3", &p->pvs) ||
           fill(db, "INSERT INTO links SELECT substr(?1, 1, instr(?1, char(10)) - 1), "
                "substr(?1, instr(?1, char(10)) + 1), ?5, ?4 WHERE abs(?4 - ?5) > 10", &p->links) ? -1 : 0;
}

int ebpfMonHistorySumUp(sqlite3 *db, int64_t before, int64_t from, int64_t to, ebpfMonHistorySums *sums, char *why,
                        size_t size)
{
    pass p = { .from = from, .to = to, .sums = sums };
    int status;

    memset(sums, 0, sizeof(*sums));
    status = sqlite3_exec(db, tables, NULL, NULL, NULL) != SQLITE_OK || readPuts(&p, db, 0, from) ||
             readPuts(&p, db, 1, before) || fillTables(db, &p) ? -1 : 0;
    if (p.isFull)
        snprintf(why, size, "no memory for the sums of these puts. Ask for a shorter time");
    else if (status)
        snprintf(why, size, "the file cannot be read: %s", sqlite3_errmsg(db));
    freeTable(&p.people);
    freeTable(&p.pvs);
    freeTable(&p.links);
    free(p.pairs.slot);
    return p.isFull ? -1 : status;
}
