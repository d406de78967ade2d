/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "history/historyAsk.h"
#include "history/historyRow.h"
#include "history/historyStore.h"

#define SECOND 1000000000
#define DAY    (86400ll * SECOND)
#define CLOCK "%2d:%2d%n:%lf%n" /* 03:10 or 03:10:05.5 */

/* --- times --- */

/* Of a local time that comes twice, because clocks are set back, the first one, or with "isEnd" the last one. One that
 * does not come, because they are set ahead, is as an hour earlier, or later. */
static time_t chooseLocal(const struct tm *tm, int isEnd)
{
    time_t best = 0;
    int isBestReal = -1;

    for (int isSummer = -1; isSummer <= 1; isSummer++) {
        struct tm copy = *tm;
        time_t time;
        int isReal;

        copy.tm_isdst = isSummer;
        time = mktime(&copy);
        isReal = copy.tm_hour == tm->tm_hour && copy.tm_min == tm->tm_min;
        if (isReal > isBestReal || (isReal == isBestReal && (isEnd ? time > best : time < best))) {
            best = time;
            isBestReal = isReal;
        }
    }
    return best;
}

/* The day may be less than 1. */
static int64_t makeTime(struct tm *tm, double seconds, int isUtc, int isEnd)
{
    tm->tm_sec = (int)seconds;
    return (int64_t)(isUtc ? timegm(tm) : chooseLocal(tm, isEnd)) * SECOND +
           (int64_t)((seconds - (int)seconds) * SECOND);
}

static int64_t findMidnight(int64_t now, int daysBefore)
{
    time_t seconds = (time_t)(now / SECOND);
    struct tm tm;

    localtime_r(&seconds, &tm);
    tm.tm_hour = tm.tm_min = 0;
    tm.tm_mday -= daysBefore;
    return makeTime(&tm, 0, 0, 0);
}

static int parseAgo(const char *text, int64_t now, int64_t *time)
{
    char *unit;
    double n = strtod(text + 1, &unit);
    double seconds = strcmp(unit, "s") == 0 ? 1 : strcmp(unit, "m") == 0 || strcmp(unit, "min") == 0 ? 60 :
                     strcmp(unit, "h") == 0 ? 3600 : strcmp(unit, "d") == 0 ? 86400 : 0;

    if (!seconds || !(n >= 0 && n * seconds <= (double)now / SECOND)) /* nor is it NaN */
        return -1;
    *time = now - (int64_t)(n * seconds * SECOND);
    return 0;
}

/* Nonzero: there is such a day and such a time. mktime would take the 31st of November for the first of December. */
static int isReal(const struct tm *tm, double second)
{
    struct tm copy = *tm;

    copy.tm_sec = 0;
    timegm(&copy);
    return tm->tm_year >= 70 && tm->tm_year < 300 && copy.tm_mon == tm->tm_mon && copy.tm_mday == tm->tm_mday &&
           copy.tm_hour == tm->tm_hour && copy.tm_min == tm->tm_min && second >= 0 && second < 61;
}

/* The whole text is a time of a day. */
static int parseClock(const char *text, struct tm *tm, double *second, int *isUtc)
{
    int end = 0;

    if (sscanf(text, CLOCK, &tm->tm_hour, &tm->tm_min, &end, second, &end) < 2)
        return -1;
    *isUtc = text[end] == 'Z';
    return text[end + *isUtc] ? -1 : 0;
}

static int parseDate(const char *text, int64_t now, int isEnd, int64_t *time)
{
    time_t seconds = (time_t)(now / SECOND);
    int end = 0, isUtc = 0;
    double second = 0;
    int year, month, day;
    struct tm tm;

    localtime_r(&seconds, &tm);
    tm.tm_min = tm.tm_hour = 0;
    if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &end) == 3) {
        tm.tm_year = year - 1900;
        tm.tm_mon = month - 1;
        tm.tm_mday = day;
        text += end;
        text += *text == ' ' || *text == 'T';
        if ((*text && parseClock(text, &tm, &second, &isUtc)) || !isReal(&tm, second))
            return -1;
        *time = makeTime(&tm, second, isUtc, isEnd);
        return 0;
    }
    if (parseClock(text, &tm, &second, &isUtc) || isUtc || !isReal(&tm, second))
        return -1;
    *time = makeTime(&tm, second, 0, isEnd);
    if (*time > now) {
        tm.tm_mday--;
        *time = makeTime(&tm, second, 0, isEnd);
    }
    return 0;
}

int ebpfMonHistoryParseTime(const char *text, int64_t now, int isEnd, int64_t *time)
{
    if (text[0] == '-')
        return parseAgo(text, now, time);
    if (strcmp(text, "now") == 0)
        *time = now;
    else if (strcmp(text, "today") == 0)
        *time = findMidnight(now, 0);
    else if (strcmp(text, "yesterday") == 0)
        *time = findMidnight(now, 1);
    else
        return parseDate(text, now, isEnd, time);
    return 0;
}

int ebpfMonHistoryParseEnd(const char *text, int64_t now, int64_t from, int64_t *to)
{
    if (ebpfMonHistoryParseTime(text, now, 1, to))
        return -1;
    if (*to < from && text[0] >= '0' && text[0] <= '9') /* at 03:15 "03:10..03:20" ends today; a date stays the same */
        return ebpfMonHistoryParseTime(text, from + DAY, 1, to);
    return 0;
}

int ebpfMonHistoryParseRange(const char *text, int64_t now, int64_t *from, int64_t *to)
{
    const char *dots = strstr(text, "..");
    char begin[60];

    if (!dots)
        return ebpfMonHistoryParseTime(text, now, 0, from);
    if ((size_t)snprintf(begin, sizeof(begin), "%.*s", (int)(dots - text), text) >= sizeof(begin))
        return -1;
    return ebpfMonHistoryParseTime(begin, now, 0, from) || ebpfMonHistoryParseEnd(dots + 2, now, *from, to) ? -1 : 0;
}

const char *ebpfMonHistoryNamePv(const char *pv, char *buf, size_t size)
{
    size_t length = strlen(pv);

    if (length <= 4 || strcmp(pv + length - 4, ".VAL") != 0)
        return pv;
    snprintf(buf, size, "%.*s", (int)(length - 4), pv);
    return buf;
}

/* --- the answer --- */

/* As a value of SQL: in names and values a bracket is itself, not a set of characters as for GLOB. */
#define GLOB_OF "replace(?%d, '[', '[[]')"

/* Nonzero: it stands for more than itself. */
static int isPattern(const char *text)
{
    return strpbrk(text, "*?") != NULL;
}

/* Adds a condition; a pattern without * and ? is compared, which an index serves. */
static void addPattern(char *sql, size_t size, const char *column, const char *pattern, int at)
{
    size_t used = strlen(sql);

    if (pattern)
        snprintf(sql + used, size - used, isPattern(pattern) ? " AND %s GLOB " GLOB_OF : " AND %s = ?%d", column, at);
}

/* What selects the rows. Kinds but puts have an index of their own. */
static const char *chooseRows(const ebpfMonHistoryQuestion *q)
{
    if (q->kind && !isPattern(q->kind) && strcmp(q->kind, "put") != 0)
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
             "SELECT v FROM p WHERE v GLOB " GLOB_OF " LIMIT ?12)", column, column, column, column, at);
}

static void bindNames(sqlite3_stmt *stmt, const char *pattern, int most)
{
    sqlite3_bind_text(stmt, 11, pattern, (int)strcspn(pattern, "*?"), SQLITE_STATIC);
    sqlite3_bind_int(stmt, 12, most);
}

/* Nonzero: few names match this pattern, so their rows are looked up. Rows of many names are soon found by time. */
static int areFew(sqlite3 *db, const char *column, const char *pattern)
{
    char sql[500] = "SELECT count(*) FROM ";
    sqlite3_stmt *stmt = NULL;
    int few = 0;

    addNames(sql, sizeof(sql), column, 1);
    if (ebpfMonHistoryStoreIsOld(db) || !pattern || !isPattern(pattern) ||
        sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
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
    return q->unexpected || q->failed || (q->kind && !isPattern(q->kind) && strcmp(q->kind, "put") != 0);
}

/* One SELECT of the rows that match. A run may have ended after the time that is asked for: its put before that is not
 * known by itself. */
static void addRows(char *sql, size_t size, const ebpfMonHistoryQuestion *q, const char *which, int byPv, int byUser)
{
    size_t used = strlen(sql);

    snprintf(sql + used, size - used, "SELECT id, " EBPFMON_HISTORY_COLUMNS " FROM rows %s WHERE %s "
             "AND time BETWEEN ?1 AND ?10 AND first <= ?2 AND kind NOT IN ('gap', 'lost')%s%s",
             byPv ? "INDEXED BY rowsByPv" : byUser ? "INDEXED BY rowsByUser" : "", which,
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
    if (q->process)
        snprintf(sql + used, size - used, " AND instr(coalesce(who, '') || ' ' || coalesce(origin, ''), ?13)");
}

/* Times at which nobody watched belong to each answer, whatever it is about. All rows, which may be millions, are
 * merged as they lie in the indices; the newest ones are sorted.
 * Returns the pattern of which ?11 is the begin; NULL: there is none. */
static const char *makeSql(sqlite3 *db, const ebpfMonHistoryQuestion *q, char *sql, size_t size)
{
    int byPv = !isRare(q) && areFew(db, "pv", q->pv), byUser = !isRare(q) && !byPv && areFew(db, "user", q->user);
    int isSplit = !q->most && q->automatic && !isRare(q) && !byPv && !byUser;
    size_t used;

    snprintf(sql, size, "WITH found AS (");
    addRows(sql, size, q, isSplit ? "automatic = 0" : chooseRows(q), byPv, byUser);
    used = strlen(sql);
    snprintf(sql + used, size - used, isSplit ? " UNION ALL " : q->most ? " ORDER BY time DESC, id DESC LIMIT ?9" : "");
    if (isSplit)
        addRows(sql, size, q, "automatic = 1", 0, 0);
    used = strlen(sql);
    snprintf(sql + used, size - used, ") SELECT " EBPFMON_HISTORY_COLUMNS ", id FROM found UNION ALL "
             "SELECT " EBPFMON_HISTORY_COLUMNS ", id FROM gaps WHERE first <= ?2 AND automatic <= %d AND time >= %s%s "
             "ORDER BY time, id", q->automatic,
             q->most ? "(SELECT CASE count(*) WHEN ?9 THEN min(time) ELSE ?1 END FROM found)" : "?1",
             q->from ? "" : " AND first > 0"); /* who asks for all knows that it begins somewhere */
    return byPv ? q->pv : byUser ? q->user : NULL;
}

static sqlite3_stmt *prepareQuestion(sqlite3 *db, const ebpfMonHistoryQuestion *q, char *why, size_t size)
{
    const char *const patterns[] = { q->pv, q->user, q->host, q->ioc, q->value, q->kind };
    sqlite3_stmt *stmt;
    char sql[4000];
    const char *few = makeSql(db, q, sql, sizeof(sql));

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        ebpfMonHistoryStoreDescribe(db, why, size);
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
    if (q->process)
        sqlite3_bind_text(stmt, 13, q->process, -1, SQLITE_STATIC);
    return stmt;
}

static int isNote(sqlite3_stmt *row)
{
    const char *kind = ebpfMonHistoryRowText(row, ebpfMonAtKind);

    return strcmp(kind, "gap") == 0 || strcmp(kind, "lost") == 0;
}

long ebpfMonHistoryEach(const ebpfMonHistoryQuestion *q, void (*take)(void *arg, sqlite3_stmt *row), void *arg,
                        char *why, size_t size)
{
    sqlite3 *db = ebpfMonHistoryStoreOpenReader(q->file, why, size);
    ebpfMonHistoryQuestion named = *q;
    char pv[200];
    sqlite3_stmt *stmt;
    long n = 0;
    int status = SQLITE_ERROR;

    named.pv = q->pv ? ebpfMonHistoryNamePv(q->pv, pv, sizeof(pv)) : NULL;
    stmt = db ? prepareQuestion(db, &named, why, size) : NULL;
    if (db && q->isStopping)
        sqlite3_progress_handler(db, 10000, q->isStopping, q->arg);
    while (stmt && (status = sqlite3_step(stmt)) == SQLITE_ROW) {
        n += !isNote(stmt) || (q->kind && strcmp(ebpfMonHistoryRowText(stmt, ebpfMonAtKind), q->kind) == 0);
        take(arg, stmt);
    }
    if (stmt && status != SQLITE_DONE)
        ebpfMonHistoryStoreDescribe(db, why, size);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return status == SQLITE_DONE ? n : -1;
}

typedef struct {
    FILE *out;
    ebpfMonHistoryForm form;
    ebpfMonJson json;
} writing;

static void writeRow(void *arg, sqlite3_stmt *row)
{
    writing *w = arg;

    switch (w->form) {
    case ebpfMonHistoryText:     ebpfMonHistoryRowWriteText(row, w->out); break;
    case ebpfMonHistoryCsv:      ebpfMonHistoryRowWriteCsv(row, w->out); break;
    case ebpfMonHistoryCaPutLog:
        if (!isNote(row)) /* its lines are puts only */
            ebpfMonHistoryRowWriteCaPutLog(row, w->out);
        break;
    case ebpfMonHistoryJson:
    case ebpfMonHistoryOtlp:
    case ebpfMonHistoryHtml:     ebpfMonHistoryRowWriteJson(row, &w->json, w->out); break;
    }
}

long ebpfMonHistoryAsk(const ebpfMonHistoryQuestion *q, FILE *out, char *why, size_t size)
{
    writing w = { .out = out, .form = q->form };
    long n;

    if (q->form == ebpfMonHistoryCsv)
        ebpfMonHistoryRowWriteCsvHeader(out);
    n = ebpfMonHistoryEach(q, writeRow, &w, why, size);
    ebpfMonJsonFree(&w.json);
    return n;
}
