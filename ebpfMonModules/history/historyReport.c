/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <stdint.h>
#include <sqlite3.h>

#include "common/array.h"
#include "common/hash.h"
#include "history/historyReport.h"
#include "history/historyRow.h"
#include "history/historyStore.h"

/* --- sums ---
 *
 * Sums up the puts of a time in one pass. SQLite would sort all of them once for each question of the report, which
 * takes five times as long for a million rows. One thread. */

#define EBPFMON_HISTORY_STEPS 160 /* into which the time is divided */

typedef struct {
    uint64_t people[EBPFMON_HISTORY_STEPS], automatic[EBPFMON_HISTORY_STEPS]; /* puts; of a run all at its end */
} ebpfMonHistorySums;

static const char tables[] =
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

/* Runs the statement for each sum, and binds what the statement has of: ?1 key, ?2 old, ?3 value, ?4 puts, ?5 before,
 * ?6 PVs, ?7 first, ?8 last. */
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

/*
 * Adds temporary tables to this connection, about the puts between "from" and "to" (ns since 1970):
 *   people (who, puts, pvs, first, last)     by user@host
 *   changed (pv, before, after, puts)        PVs to which people wrote, and of which the last value is not the one that
 *                                            they had before the first put
 *   links (pv, origin, before, puts)         what IOCs wrote; "before": between "before" and "from". Only if these are
 *                                            10 puts more or fewer
 * 0; -1: "why" says what is wrong.
 */
static int sumUp(sqlite3 *db, int64_t before, int64_t from, int64_t to, ebpfMonHistorySums *sums, char *why,
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
        ebpfMonHistoryStoreDescribe(db, why, size);
    freeTable(&p.people);
    freeTable(&p.pvs);
    freeTable(&p.links);
    free(p.pairs.slot);
    return p.isFull ? -1 : status;
}

/* --- report --- */

#define ROWS      40 /* of each table */
#define BEFORE_NS (6ll * 3600 * 1000000000)
#define WIDTH     960 /* of the picture of the time; pixels, as those that follow */
#define HEIGHT    80
#define SPARK     160 /* width of the picture of a figure */
#define SPARK_TOP 24

/* A table: its columns are those of the query, which gets ?1 and ?2, the times, ?3, the begin of the time before that
 * is as long, and ?4, six hours before. Columns whose names end in "time" are times. */
typedef struct {
    const char *title, *sql, *none; /* none: what stands there if there is no row; NULL: the part is left out */
    int hasFigures;                 /* nonzero: its first columns are IOC, record and figure of rows of kind minute */
} part;

typedef struct {
    sqlite3 *db;
    FILE    *out;
    const ebpfMonHistoryQuestion *q;
    int      isHtml;
    enum { knownNot, knownPartly, known } known; /* what happened in that time */
    ebpfMonHistorySums sums;
} page;

#define IN_TIME "time BETWEEN ?1 AND ?2 "

static const part parts[] = {
    { "Not watched", "SELECT first AS \"from time\", time AS \"to time\", value AS why, "
      "CASE kind WHEN 'lost' THEN n END AS lost FROM gaps "
      "WHERE time >= ?1 AND first <= ?2 ORDER BY time", NULL },
    { "What happened", "SELECT time, value AS event FROM rows WHERE kind = 'event' AND kind <> 'put' AND " IN_TIME
      "ORDER BY time", "No IOC ended, restarted or hung, no scan was late." },
    { "Puts that the rules did not expect", "SELECT time, pv AS PV, old, value AS new, who, reason FROM rows "
      "WHERE reason IS NOT NULL AND " IN_TIME "ORDER BY time", "None." },
    { "Puts that failed", "SELECT time, pv AS PV, value, who, result FROM rows WHERE " EBPFMON_HISTORY_FAILED
      " AND +automatic = 0 AND " IN_TIME "ORDER BY time", "None." },
    { "Who wrote", "SELECT who, puts, pvs AS PVs, first AS \"first time\", last AS \"last time\" FROM people "
      "ORDER BY puts DESC, who", "Nobody." },
    /* a program that writes often does not hide what others wrote */
    { "What people wrote, the newest first (up to five times each to a PV)", "SELECT time, PV, old, new, who FROM "
      "(SELECT time, pv AS PV, old, value AS new, who, row_number() OVER (PARTITION BY pv, user, host "
      "ORDER BY time DESC) AS nth FROM (SELECT * FROM rows WHERE kind = 'put' AND automatic = 0 AND " IN_TIME
      "ORDER BY time DESC LIMIT 100000)) WHERE nth <= 5 ORDER BY time DESC", NULL },
    { "PVs that did not get back their value", "SELECT pv AS PV, before, after, puts FROM changed "
      "ORDER BY puts DESC, pv", "All have it, or nothing was written." },
    { "What IOCs wrote more or less often than before", "SELECT pv AS PV, origin AS \"by\", before AS \"puts before\", "
      "puts FROM links WHERE (puts > 1.5 * before OR before > 1.5 * puts) "
      "AND ?3 >= (SELECT min(time) FROM rows WHERE automatic = 1) ORDER BY abs(puts - before) DESC, pv",
      "Nothing that stands out, as far as the history has the time before." },
    { "Slowest chains", "SELECT time, ioc AS IOC, pv AS root, value AS took FROM rows WHERE kind = 'chain' "
      "AND kind <> 'put' AND " IN_TIME "ORDER BY CAST(value AS REAL) DESC LIMIT 10", NULL },
    /* each minute has its figures as JSON: those that were, on average, beyond all minutes of the six hours before, or
     * for a minute far beyond */
    { "Unusual against the six hours before", "WITH f AS (SELECT ioc, coalesce(pv, '') AS pv, j.key AS figure, "
      "j.value AS v, time FROM rows, json_each(rows.value) AS j WHERE kind = 'minute' AND kind <> 'put' "
      "AND time BETWEEN ?4 AND ?2), "
      "g AS (SELECT ioc, pv, figure, avg(CASE WHEN time >= ?1 THEN v END) AS now, "
      "max(CASE WHEN time >= ?1 THEN v END) AS peak, "
      "avg(CASE WHEN time < ?1 THEN v END) AS usual, min(CASE WHEN time < ?1 THEN v END) AS least, "
      "max(CASE WHEN time < ?1 THEN v END) AS most, sum(time < ?1) AS minutes, CASE figure WHEN 'cpu' THEN 2 "
      "WHEN 'memory' THEN 5 WHEN 'mean_us' THEN 50 WHEN 'max_us' THEN 500 WHEN 'processed_per_s' THEN 1 "
      "WHEN 'chains_per_s' THEN 1 ELSE 0.9 END AS enough FROM f GROUP BY 1, 2, 3) "
      "SELECT ioc AS IOC, pv AS record, figure, printf('%.3g', usual) AS usual, printf('%.3g to %.3g', least, most) "
      "AS \"from, to\", printf('%.3g', now) AS now, printf('%.3g', peak) AS highest FROM g "
      "WHERE minutes >= 3 AND now IS NOT NULL "
      "AND ((abs(now - usual) > enough AND (now > 1.3 * most OR now < least / 1.3)) "
      "OR (peak > 2 * most AND peak - most > 2 * enough)) "
      "ORDER BY max(peak / max(usual, 0.001), usual / max(now, 0.001)) DESC",
      "Nothing, as far as figures of the time before are there.", 1 },
    { "Clients", "SELECT time, value AS client FROM rows WHERE kind = 'client' AND kind <> 'put' AND " IN_TIME
      "ORDER BY time", NULL },
};

static const char style[] =
    "<style>body{font:14px sans-serif;margin:1em auto;max-width:75em}table{border-collapse:collapse}"
    "td,th{border:1px solid #bbb;padding:2px 6px;text-align:left;vertical-align:top}th{background:#eee}"
    "svg{background:#f8f8f8}h2{font-size:16px;margin:1.2em 0 .4em}</style>";

/* A text of other people's programs: it must not be read as HTML, which Markdown may contain, or as a link; nor may a
 * bar end its cell. */
static void writeText(const page *p, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", p->out);
        else if (*text == '&')
            fputs("&amp;", p->out);
        else if (p->isHtml && *text == '"')
            fputs("&quot;", p->out);
        else if (!p->isHtml && (*text == '|' || *text == '['))
            fprintf(p->out, "\\%c", *text);
        else
            fputc(*text == '\n' || *text == '\r' ? ' ' : *text, p->out);
}

static void writeTitle(const page *p, const char *title)
{
    fprintf(p->out, p->isHtml ? "<h2>%s</h2>\n" : "\n## %s\n\n", title);
}

static void writeParagraph(const page *p, const char *text)
{
    fprintf(p->out, p->isHtml ? "<p>%s</p>\n" : "%s\n", text);
}

static int isTime(const char *column)
{
    size_t length = strlen(column);

    return length >= 4 && strcmp(column + length - 4, "time") == 0;
}

/* --- pictures --- */

static double findX(const page *p, int64_t from, int64_t time, int width)
{
    return p->q->to > from ? (double)(time - from) / (double)(p->q->to - from) * width : 0;
}

static uint64_t findMost(const uint64_t steps[EBPFMON_HISTORY_STEPS])
{
    uint64_t most = 1;

    for (int i = 0; i < EBPFMON_HISTORY_STEPS; i++)
        if (steps[i] > most)
            most = steps[i];
    return most;
}

static void drawSteps(const page *p, const uint64_t steps[EBPFMON_HISTORY_STEPS], int top, const char *colour)
{
    uint64_t most = findMost(steps);
    double width = (double)WIDTH / EBPFMON_HISTORY_STEPS;

    for (int i = 0; i < EBPFMON_HISTORY_STEPS; i++) {
        double height = (double)steps[i] / (double)most * (HEIGHT - 16);

        if (steps[i])
            fprintf(p->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>", i * width,
                    top + HEIGHT - height, width - 1, height, colour);
    }
    fprintf(p->out, "<text x=\"4\" y=\"%d\" font-size=\"12\">puts of %s, up to %llu in %.3g s</text>\n", top + 12,
            top ? "IOCs" : "people", (unsigned long long)most,
            (double)(p->q->to - p->q->from) / EBPFMON_HISTORY_STEPS / 1e9);
}

/* Events as lines with their texts, times at which nobody watched as areas. */
static int drawEvents(const page *p)
{
    sqlite3_stmt *row;
    int status = sqlite3_prepare_v2(p->db, "SELECT first, time, value, 1 FROM gaps WHERE time >= ?1 "
                                    "AND first <= ?2 UNION ALL SELECT * FROM (SELECT time, time, value, "
                                    "0 FROM rows WHERE kind = 'event' AND kind <> 'put' AND " IN_TIME "LIMIT 1000)", -1,
                                    &row, NULL);

    if (status != SQLITE_OK)
        return -1;
    sqlite3_bind_int64(row, 1, p->q->from);
    sqlite3_bind_int64(row, 2, p->q->to);
    while ((status = sqlite3_step(row)) == SQLITE_ROW) {
        int64_t from = sqlite3_column_int64(row, 0), to = sqlite3_column_int64(row, 1);
        double x = findX(p, p->q->from, from > p->q->from ? from : p->q->from, WIDTH);
        const char *text = (const char *)sqlite3_column_text(row, 2);

        fprintf(p->out, "<rect x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\" fill=\"%s\" opacity=\".6\"><title>", x,
                1.5 + findX(p, p->q->from, to < p->q->to ? to : p->q->to, WIDTH) - x, 2 * HEIGHT,
                sqlite3_column_int(row, 3) ? "#999" : "#c00");
        writeText(p, text ? text : "");
        fputs("</title></rect>\n", p->out);
    }
    sqlite3_finalize(row);
    return status == SQLITE_DONE ? 0 : -1;
}

static int drawTime(const page *p)
{
    int status;

    fprintf(p->out, "<svg width=\"%d\" height=\"%d\">\n", WIDTH, 2 * HEIGHT);
    drawSteps(p, p->sums.people, 0, "#36c");
    drawSteps(p, p->sums.automatic, HEIGHT, "#8ac");
    status = drawEvents(p);
    fputs("</svg>\n<p>Red: events. Grey: nobody watched, or rows were lost. The pointer shows which.</p>\n", p->out);
    return status;
}

/* The figure of this row of the table, each minute of the six hours before, and of the time. */
static int drawFigure(const page *p, sqlite3_stmt *table)
{
    static const char figures[] =
        "WITH f AS (SELECT time, CAST(json_extract(value, '$.' || ?3) AS REAL) AS v FROM rows "
        "WHERE kind = 'minute' AND ioc IS ?1 AND pv IS nullif(?2, '') AND time BETWEEN ?4 AND ?5) "
        "SELECT time, v, (SELECT max(v) FROM f) FROM f WHERE v IS NOT NULL ORDER BY time";
    int64_t from = p->q->from - BEFORE_NS;
    sqlite3_stmt *row;
    int status = sqlite3_prepare_v2(p->db, figures, -1, &row, NULL);

    if (status != SQLITE_OK)
        return -1;
    for (int i = 0; i < 3; i++)
        sqlite3_bind_value(row, i + 1, sqlite3_column_value(table, i));
    sqlite3_bind_int64(row, 4, from);
    sqlite3_bind_int64(row, 5, p->q->to);
    fprintf(p->out, "<td><svg width=\"%d\" height=\"%d\"><rect x=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"#fdd\"/>"
            "<polyline fill=\"none\" stroke=\"#36c\" points=\"", SPARK, SPARK_TOP, findX(p, from, p->q->from, SPARK),
            SPARK, SPARK_TOP);
    while ((status = sqlite3_step(row)) == SQLITE_ROW) {
        double most = sqlite3_column_double(row, 2);

        fprintf(p->out, "%.1f,%.1f ", findX(p, from, sqlite3_column_int64(row, 0), SPARK),
                SPARK_TOP - (most > 0 ? sqlite3_column_double(row, 1) / most * (SPARK_TOP - 2) : 0));
    }
    fputs("\"/></svg></td>", p->out);
    sqlite3_finalize(row);
    return status == SQLITE_DONE ? 0 : -1;
}

/* --- tables --- */

static void writeHeader(const page *p, const part *of, sqlite3_stmt *stmt)
{
    int columns = sqlite3_column_count(stmt);

    fputs(p->isHtml ? "<table><tr>" : "", p->out);
    for (int i = 0; i < columns; i++)
        fprintf(p->out, p->isHtml ? "<th>%s</th>" : "| %s ", sqlite3_column_name(stmt, i));
    if (p->isHtml) {
        fputs(of->hasFigures ? "<th>since six hours before</th></tr>\n" : "</tr>\n", p->out);
        return;
    }
    fputs("|\n", p->out);
    for (int i = 0; i < columns; i++)
        fputs("|---", p->out);
    fputs("|\n", p->out);
}

static int writeRow(const page *p, const part *of, sqlite3_stmt *stmt)
{
    int status = 0;

    fputs(p->isHtml ? "<tr>" : "", p->out);
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const unsigned char *text = sqlite3_column_text(stmt, i);
        char time[40];

        fputs(p->isHtml ? "<td>" : "| ", p->out);
        if (text && isTime(sqlite3_column_name(stmt, i))) {
            if (!sqlite3_column_int64(stmt, i)) /* of what is not known before the first row */
                snprintf(time, sizeof(time), "before");
            else
                ebpfMonHistoryFormatTime(sqlite3_column_int64(stmt, i), 0, time, sizeof(time));
            fputs(time, p->out);
        } else {
            writeText(p, text ? (const char *)text : "");
        }
        fputs(p->isHtml ? "</td>" : " ", p->out);
    }
    if (p->isHtml && of->hasFigures)
        status = drawFigure(p, stmt);
    fputs(p->isHtml ? "</tr>\n" : "|\n", p->out);
    return status;
}

static int writePart(const page *p, const part *of)
{
    sqlite3_stmt *stmt;
    int status = sqlite3_prepare_v2(p->db, of->sql, -1, &stmt, NULL), rows = 0, failed = 0;

    if (status != SQLITE_OK)
        return -1;
    sqlite3_bind_int64(stmt, 1, p->q->from);
    sqlite3_bind_int64(stmt, 2, p->q->to);
    sqlite3_bind_int64(stmt, 3, p->q->from - (p->q->to - p->q->from)); /* a number that it does not have does no harm */
    sqlite3_bind_int64(stmt, 4, p->q->from - BEFORE_NS);
    while (!failed && (status = sqlite3_step(stmt)) == SQLITE_ROW && rows < ROWS) {
        if (!rows++) {
            writeTitle(p, of->title);
            writeHeader(p, of, stmt);
        }
        failed = writeRow(p, of, stmt);
    }
    if (rows && p->isHtml)
        fputs("</table>\n", p->out);
    if (status == SQLITE_ROW && !failed)
        writeParagraph(p, "\nThere are more.");
    if (status == SQLITE_DONE && !rows && of->none) {
        writeTitle(p, of->title);
        if (p->known == knownPartly)
            writeParagraph(p, "Not all is known (see above). Of the rest:");
        writeParagraph(p, p->known == knownNot ? "Not known." : of->none);
    }
    sqlite3_finalize(stmt);
    return failed || (status != SQLITE_DONE && status != SQLITE_ROW) ? -1 : 0;
}

/* How much of the time the gaps leave. One that is to come, even in part, becomes a gap. 0, or -1. */
static int findKnown(page *p)
{
    static const char future[] = "INSERT INTO gaps (time, kind, automatic, value, n, first) SELECT ?2, 'gap', 0, 'this "
        "time has not come yet', 1, max(now, ?1) FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000000 AS "
        "now) WHERE ?2 > now + 60000000000";
    static const char all[] = "SELECT first, time, kind = 'gap' FROM gaps WHERE time >= ?1 AND first <= ?2 AND "
        "automatic = 0 ORDER BY first";
    int64_t end = p->q->from;
    sqlite3_stmt *row;
    int status, gaps = 0;

    if (sqlite3_prepare_v2(p->db, future, -1, &row, NULL) != SQLITE_OK)
        return -1;
    sqlite3_bind_int64(row, 1, p->q->from);
    sqlite3_bind_int64(row, 2, p->q->to);
    status = sqlite3_step(row);
    sqlite3_finalize(row);
    if (status != SQLITE_DONE || sqlite3_prepare_v2(p->db, all, -1, &row, NULL) != SQLITE_OK)
        return -1;
    sqlite3_bind_int64(row, 1, p->q->from);
    sqlite3_bind_int64(row, 2, p->q->to);
    for (; (status = sqlite3_step(row)) == SQLITE_ROW; gaps++)
        if (sqlite3_column_int(row, 2) && sqlite3_column_int64(row, 0) <= end && sqlite3_column_int64(row, 1) > end)
            end = sqlite3_column_int64(row, 1);
    sqlite3_finalize(row);
    p->known = end >= p->q->to ? knownNot : gaps ? knownPartly : known;
    return status == SQLITE_DONE ? 0 : -1;
}

static void writeHead(const page *p)
{
    char from[40], to[40];

    ebpfMonHistoryFormatTime(p->q->from, 0, from, sizeof(from));
    ebpfMonHistoryFormatTime(p->q->to, 0, to, sizeof(to));
    if (p->isHtml)
        fprintf(p->out, "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>%s to %s</title>\n%s</head>"
                "<body>\n<h1>%s to %s</h1>\n", from, to, style, from, to);
    else
        fprintf(p->out, "# %s to %s\n", from, to);
}

int ebpfMonHistoryWriteReport(const ebpfMonHistoryQuestion *q, FILE *out, char *why, size_t size)
{
    page p = { .db = ebpfMonHistoryStoreOpenReader(q->file, why, size), .out = out, .q = q,
               .isHtml = q->form == ebpfMonHistoryHtml };
    int status;

    if (!p.db)
        return -1;
    if (findKnown(&p)) {
        ebpfMonHistoryStoreDescribe(p.db, why, size);
        sqlite3_close(p.db);
        return -1;
    }
    if (sumUp(p.db, q->from - (q->to - q->from), q->from, q->to, &p.sums, why, size)) {
        sqlite3_close(p.db);
        return -1;
    }
    writeHead(&p);
    status = p.isHtml ? drawTime(&p) : 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == 0; i++)
        status = writePart(&p, &parts[i]);
    if (p.isHtml)
        fputs("</body></html>\n", out);
    if (status)
        ebpfMonHistoryStoreDescribe(p.db, why, size);
    sqlite3_close(p.db);
    return status;
}
