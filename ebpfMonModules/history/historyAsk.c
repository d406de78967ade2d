/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "history/historyAsk.h"
#include "history/historyRow.h"
#include "history/historyStore.h"

#define SECOND 1000000000
#define CLOCK "%2d:%2d%n:%lf%n" /* 03:10 or 03:10:05.5 */

/* --- times --- */

static int64_t makeTime(struct tm *tm, double seconds)
{
    tm->tm_sec = (int)seconds;
    tm->tm_isdst = -1;
    return (int64_t)mktime(tm) * SECOND + (int64_t)((seconds - (int)seconds) * SECOND);
}

static int64_t findMidnight(int64_t now, int daysBefore)
{
    time_t seconds = (time_t)(now / SECOND);
    struct tm tm;

    localtime_r(&seconds, &tm);
    tm.tm_hour = tm.tm_min = 0;
    tm.tm_mday -= daysBefore;
    return makeTime(&tm, 0);
}

static int parseAgo(const char *text, int64_t now, int64_t *time)
{
    char *unit;
    double n = strtod(text + 1, &unit);
    double seconds = strcmp(unit, "s") == 0 ? 1 : strcmp(unit, "m") == 0 || strcmp(unit, "min") == 0 ? 60 :
                     strcmp(unit, "h") == 0 ? 3600 : strcmp(unit, "d") == 0 ? 86400 : 0;

    if (!seconds || n < 0 || n * seconds > (double)now / SECOND)
        return -1;
    *time = now - (int64_t)(n * seconds * SECOND);
    return 0;
}

int ebpfMonHistoryParseTime(const char *text, int64_t now, int64_t *time)
{
    time_t seconds = (time_t)(now / SECOND);
    double second = 0;
    struct tm tm;
    int end = 0;

    if (text[0] == '-')
        return parseAgo(text, now, time);
    if (strcmp(text, "now") == 0)
        *time = now;
    else if (strcmp(text, "today") == 0)
        *time = findMidnight(now, 0);
    else if (strcmp(text, "yesterday") == 0)
        *time = findMidnight(now, 1);
    else {
        localtime_r(&seconds, &tm);
        tm.tm_min = tm.tm_hour = 0;
        if (sscanf(text, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &end) == 3) {
            tm.tm_year -= 1900;
            tm.tm_mon--;
            text += end;
            text += *text == ' ' || *text == 'T';
            end = 0;
            if (*text && (sscanf(text, CLOCK, &tm.tm_hour, &tm.tm_min, &end, &second, &end) < 2 || text[end]))
                return -1;
            *time = makeTime(&tm, second);
        } else {
            if (sscanf(text, CLOCK, &tm.tm_hour, &tm.tm_min, &end, &second, &end) < 2 || text[end])
                return -1;
            *time = makeTime(&tm, second);
            if (*time > now) {
                tm.tm_mday--;
                *time = makeTime(&tm, second);
            }
        }
    }
    return 0;
}

/* --- the answer --- */

/* Adds a condition and binds its pattern; one without * and ? is compared, which an index serves. */
static void addPattern(char *sql, size_t size, const char *column, const char *pattern, int at)
{
    size_t used = strlen(sql);

    if (pattern)
        snprintf(sql + used, size - used, " AND %s %s ?%d", column, strpbrk(pattern, "*?[") ? "GLOB" : "=", at);
}

/* What selects the rows. Kinds but puts have an index of their own. */
static const char *chooseRows(const ebpfMonHistoryQuestion *q)
{
    if (q->kind && !strpbrk(q->kind, "*?[") && strcmp(q->kind, "put") != 0)
        return "kind <> 'put'";
    if (q->unexpected) /* the plus keeps SQLite from the index by time, which has all the expected ones, too */
        return q->automatic ? "reason IS NOT NULL" : "reason IS NOT NULL AND +automatic = 0";
    if (q->failed)
        return q->automatic ? EBPFMON_HISTORY_FAILED : EBPFMON_HISTORY_FAILED " AND +automatic = 0";
    return q->automatic ? "automatic IN (0, 1)" : "automatic = 0";
}

#define FEW 200

/* The names in a column that has an index, from one to the next of those that begin as the pattern ?at does. ?11: this
 * begin, ?12: how many at most. */
static void addNames(char *sql, size_t size, const char *column, int at)
{
    size_t used = strlen(sql);

    snprintf(sql + used, size - used, "(WITH RECURSIVE p(v) AS (SELECT min(%s) FROM rows WHERE %s >= ?11 UNION ALL "
             "SELECT (SELECT min(%s) FROM rows WHERE %s > p.v) FROM p WHERE p.v < ?11 || char(1114111)) "
             "SELECT v FROM p WHERE v GLOB ?%d LIMIT ?12)", column, column, column, column, at);
}

static void bindNames(sqlite3_stmt *stmt, const char *pattern, int most)
{
    sqlite3_bind_text(stmt, 11, pattern, (int)strcspn(pattern, "*?["), SQLITE_STATIC);
    sqlite3_bind_int(stmt, 12, most);
}

/* Nonzero: few names match this pattern, so their rows are looked up. Rows of many names are soon found by time. */
static int areFew(sqlite3 *db, const char *column, const char *pattern)
{
    char sql[500] = "SELECT count(*) FROM ";
    sqlite3_stmt *stmt = NULL;
    int few = 0;

    addNames(sql, sizeof(sql), column, 1);
    if (!pattern || !strpbrk(pattern, "*?[") || sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return 0;
    sqlite3_bind_text(stmt, 1, pattern, -1, SQLITE_STATIC);
    bindNames(stmt, pattern, FEW + 1);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        few = sqlite3_column_int(stmt, 0) <= FEW;
    sqlite3_finalize(stmt);
    return few;
}

/* Nonzero: what is asked for has an index by time of its own, which has few rows. */
static int isRare(const ebpfMonHistoryQuestion *q)
{
    return q->unexpected || q->failed || (q->kind && !strpbrk(q->kind, "*?[") && strcmp(q->kind, "put") != 0);
}

/* A run may have ended after the time that is asked for: its put before that is not known by itself. Times at which
 * nobody watched belong to each answer, whatever it is about.
 * Returns the pattern of which ?11 is the begin; NULL: there is none. */
static const char *makeSql(sqlite3 *db, const ebpfMonHistoryQuestion *q, char *sql, size_t size)
{
    int byPv = !isRare(q) && areFew(db, "pv", q->pv), byUser = !isRare(q) && !byPv && areFew(db, "user", q->user);
    size_t used;

    snprintf(sql, size, "WITH found AS (SELECT id, " EBPFMON_HISTORY_COLUMNS " FROM rows %s WHERE %s "
             "AND time BETWEEN ?1 AND ?10 AND first <= ?2 AND kind NOT IN ('gap', 'lost')%s%s",
             byPv ? "INDEXED BY rowsByPv" : byUser ? "INDEXED BY rowsByUser" : "", chooseRows(q),
             q->kind ? "" : " AND kind NOT IN ('minute', 'record', 'variables')",
             q->failed ? " AND " EBPFMON_HISTORY_FAILED : ""); /* with -x, too */
    addPattern(sql, size, "pv", q->pv, 3);
    addPattern(sql, size, "user", q->user, 4);
    if (byPv || byUser) {
        used = strlen(sql);
        snprintf(sql + used, size - used, byPv ? " AND pv IN " : " AND user IS NOT NULL AND user IN ");
        addNames(sql, size, byPv ? "pv" : "user", byPv ? 3 : 4);
    }
    addPattern(sql, size, "host", q->host, 5);
    addPattern(sql, size, "ioc", q->ioc, 6);
    addPattern(sql, size, "value", q->value, 7);
    addPattern(sql, size, "kind", q->kind, 8);
    used = strlen(sql);
    snprintf(sql + used, size - used, " ORDER BY time DESC, id DESC LIMIT ?9) "
             "SELECT " EBPFMON_HISTORY_COLUMNS " FROM (SELECT * FROM found UNION ALL "
             "SELECT id, " EBPFMON_HISTORY_COLUMNS " FROM rows WHERE kind IN ('gap', 'lost') "
             "AND time >= max(?1, coalesce((SELECT min(time) FROM found), ?1)) "
             "AND first <= ?2) ORDER BY time, id");
    return byPv ? q->pv : byUser ? q->user : NULL;
}

static sqlite3_stmt *prepareQuestion(sqlite3 *db, const ebpfMonHistoryQuestion *q, char *why, size_t size)
{
    const char *const patterns[] = { q->pv, q->user, q->host, q->ioc, q->value, q->kind };
    sqlite3_stmt *stmt;
    char sql[3000];
    const char *few = makeSql(db, q, sql, sizeof(sql));

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        snprintf(why, size, "the file cannot be read: %s", sqlite3_errmsg(db));
        return NULL;
    }
    sqlite3_bind_int64(stmt, 1, q->from);
    sqlite3_bind_int64(stmt, 2, q->to ? q->to : INT64_MAX);
    for (int i = 0; i < (int)(sizeof(patterns) / sizeof(patterns[0])); i++)
        if (patterns[i])
            sqlite3_bind_text(stmt, 3 + i, patterns[i], -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 9, q->most ? (int64_t)q->most : -1);
    sqlite3_bind_int64(stmt, 10, q->to ? q->to + EBPFMON_HISTORY_RUN_LONGEST : INT64_MAX);
    if (few)
        bindNames(stmt, few, FEW);
    return stmt;
}

long ebpfMonHistoryAsk(const ebpfMonHistoryQuestion *q, FILE *out, char *why, size_t size)
{
    sqlite3 *db = ebpfMonHistoryStoreOpenReader(q->file, why, size);
    sqlite3_stmt *stmt = db ? prepareQuestion(db, q, why, size) : NULL;
    ebpfMonJson json = { 0 };
    long n = 0;
    int status = SQLITE_ERROR;

    if (stmt && q->form == ebpfMonHistoryCsv)
        ebpfMonHistoryRowWriteCsvHeader(out);
    while (stmt && (status = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *kind = ebpfMonHistoryRowText(stmt, ebpfMonAtKind);

        n += (strcmp(kind, "gap") != 0 && strcmp(kind, "lost") != 0) || (q->kind && strcmp(kind, q->kind) == 0);
        switch (q->form) {
        case ebpfMonHistoryText:     ebpfMonHistoryRowWriteText(stmt, out); break;
        case ebpfMonHistoryCsv:      ebpfMonHistoryRowWriteCsv(stmt, out); break;
        case ebpfMonHistoryCaPutLog: ebpfMonHistoryRowWriteCaPutLog(stmt, out); break;
        case ebpfMonHistoryJson:
        case ebpfMonHistoryOtlp:
        case ebpfMonHistoryHtml:     ebpfMonHistoryRowWriteJson(stmt, &json, out); break;
        }
    }
    if (stmt && status != SQLITE_DONE)
        snprintf(why, size, "the file cannot be read: %s", sqlite3_errmsg(db));
    ebpfMonJsonFree(&json);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return status == SQLITE_DONE ? n : -1;
}
