/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "history/historyReport.h"
#include "history/historyStore.h"

#define ROWS "40" /* of each table */
#define BEFORE_NS (6ll * 3600 * 1000000000)

/* A table: its columns are those of the query, which gets ?1 and ?2, the times, and ?3, the begin of the time before
 * that is as long. Columns whose names end in "time" are times. */
typedef struct {
    const char *title, *sql, *none; /* none: what stands there if there is no row; NULL: the part is left out */
} part;

#define IN_TIME "time BETWEEN ?1 AND ?2 "

static const part parts[] = {
    { "Not watched", "SELECT first AS \"from time\", time AS \"to time\", value AS why, n AS rows FROM rows "
      "WHERE kind IN ('gap', 'lost') AND time >= ?1 AND first <= ?2 ORDER BY time", NULL },
    { "What happened", "SELECT time, value AS event FROM rows WHERE kind = 'event' AND kind <> 'put' AND " IN_TIME
      "ORDER BY time LIMIT " ROWS, "No IOC ended, restarted or hung, no scan was late." },
    { "Puts that the rules did not expect", "SELECT time, pv AS PV, old, value AS new, who, reason FROM rows "
      "WHERE reason IS NOT NULL AND " IN_TIME "ORDER BY time LIMIT " ROWS, "None." },
    { "Puts that failed", "SELECT time, pv AS PV, value, who, result FROM rows WHERE " EBPFMON_HISTORY_FAILED
      " AND +automatic = 0 AND " IN_TIME "ORDER BY time LIMIT " ROWS, "None." },
    { "Who wrote", "SELECT coalesce(who, user, '?') AS who, count(*) AS puts, count(DISTINCT pv) AS PVs, "
      "min(time) AS \"first time\", max(time) AS \"last time\" FROM rows WHERE kind = 'put' AND automatic = 0 "
      "AND " IN_TIME "GROUP BY 1 ORDER BY 2 DESC LIMIT " ROWS, "Nobody." },
    { "What people wrote", "SELECT * FROM (SELECT time, pv AS PV, old, value AS new, who FROM rows WHERE kind = 'put' "
      "AND automatic = 0 AND " IN_TIME "ORDER BY time DESC LIMIT " ROWS ") ORDER BY time", NULL },
    { "PVs that did not get back their value", "WITH w AS (SELECT pv, old, value, "
      "row_number() OVER (PARTITION BY pv ORDER BY time) AS i, row_number() OVER (PARTITION BY pv ORDER BY time DESC) "
      "AS k FROM rows WHERE kind = 'put' AND automatic = 0 AND result = 'ok' AND " IN_TIME ") SELECT pv AS PV, "
      "max(CASE WHEN i = 1 THEN old END) AS before, max(CASE WHEN k = 1 THEN value END) AS after, count(*) AS puts "
      "FROM w GROUP BY pv HAVING before IS NOT after ORDER BY puts DESC LIMIT " ROWS,
      "All have it, or nothing was written." },
    { "What IOCs wrote more or less often than before", "WITH w AS (SELECT pv, origin, "
      "sum(CASE WHEN time >= ?1 THEN n ELSE 0 END) AS now, sum(CASE WHEN time < ?1 THEN n ELSE 0 END) AS before "
      "FROM rows WHERE kind = 'put' AND automatic = 1 AND time BETWEEN ?3 AND ?2 GROUP BY pv, origin) "
      "SELECT pv AS PV, origin AS \"by\", before AS \"puts before\", now AS puts FROM w "
      "WHERE abs(now - before) > 10 AND (now > 1.5 * before OR before > 1.5 * now) "
      "ORDER BY abs(now - before) DESC LIMIT " ROWS, "Nothing that stands out." },
    { "Slowest chains", "SELECT time, ioc AS IOC, pv AS root, value AS took FROM rows WHERE kind = 'chain' "
      "AND kind <> 'put' AND " IN_TIME "ORDER BY CAST(value AS REAL) DESC LIMIT 10", NULL },
    /* each minute has its figures as JSON: those that were, on average, beyond all minutes of the six hours before */
    { "Unusual against the six hours before", "WITH f AS (SELECT ioc, coalesce(pv, '') AS pv, j.key AS figure, "
      "j.value AS v, time FROM rows, json_each(rows.value) AS j WHERE kind = 'minute' AND kind <> 'put' "
      "AND time BETWEEN ?4 AND ?2), "
      "g AS (SELECT ioc, pv, figure, avg(CASE WHEN time >= ?1 THEN v END) AS now, "
      "avg(CASE WHEN time < ?1 THEN v END) AS usual, min(CASE WHEN time < ?1 THEN v END) AS least, "
      "max(CASE WHEN time < ?1 THEN v END) AS most, sum(time < ?1) AS minutes FROM f GROUP BY 1, 2, 3) "
      "SELECT ioc AS IOC, pv AS record, figure, printf('%.3g', usual) AS usual, printf('%.3g to %.3g', least, most) "
      "AS \"from, to\", printf('%.3g', now) AS now FROM g WHERE minutes >= 3 AND now IS NOT NULL "
      "AND abs(now - usual) > CASE figure WHEN 'cpu' THEN 2 WHEN 'memory' THEN 5 WHEN 'mean_us' THEN 50 "
      "WHEN 'max_us' THEN 500 WHEN 'processed_per_s' THEN 1 WHEN 'chains_per_s' THEN 1 ELSE 0.9 END "
      "AND (now > 1.3 * most OR now < least / 1.3) "
      "ORDER BY max(abs(now) / max(abs(usual), 0.001), abs(usual) / max(abs(now), 0.001)) DESC LIMIT " ROWS,
      "Nothing, as far as figures of the time before are there." },
    { "Clients", "SELECT time, value AS client FROM rows WHERE kind = 'client' AND kind <> 'put' AND " IN_TIME
      "ORDER BY time LIMIT " ROWS, NULL },
};

/* A cell may hold anything: a bar would end it. */
static void writeCell(const char *text, FILE *out)
{
    for (; *text; text++)
        if (*text == '|')
            fputs("\\|", out);
        else
            fputc(*text == '\n' || *text == '\r' ? ' ' : *text, out);
}

static int isTime(const char *column)
{
    size_t length = strlen(column);

    return length >= 4 && strcmp(column + length - 4, "time") == 0;
}

static void writeHeader(sqlite3_stmt *stmt, FILE *out)
{
    int columns = sqlite3_column_count(stmt);

    for (int i = 0; i < columns; i++)
        fprintf(out, "| %s ", sqlite3_column_name(stmt, i));
    fputs("|\n", out);
    for (int i = 0; i < columns; i++)
        fputs("|---", out);
    fputs("|\n", out);
}

static void writeRow(sqlite3_stmt *stmt, FILE *out)
{
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const unsigned char *text = sqlite3_column_text(stmt, i);
        char time[40];

        fputs("| ", out);
        if (text && isTime(sqlite3_column_name(stmt, i))) {
            ebpfMonHistoryFormatTime(sqlite3_column_int64(stmt, i), 0, time, sizeof(time));
            fputs(time, out);
        } else {
            writeCell(text ? (const char *)text : "", out);
        }
        fputc(' ', out);
    }
    fputs("|\n", out);
}

static int writePart(sqlite3 *db, const part *p, const ebpfMonHistoryQuestion *q, FILE *out, char *why, size_t size)
{
    sqlite3_stmt *stmt;
    int status, rows = 0;

    if (sqlite3_prepare_v2(db, p->sql, -1, &stmt, NULL) != SQLITE_OK) {
        snprintf(why, size, "the file cannot be read: %s", sqlite3_errmsg(db));
        return -1;
    }
    sqlite3_bind_int64(stmt, 1, q->from);
    sqlite3_bind_int64(stmt, 2, q->to);
    if (sqlite3_bind_parameter_count(stmt) >= 3)
        sqlite3_bind_int64(stmt, 3, q->from - (q->to - q->from));
    if (sqlite3_bind_parameter_count(stmt) >= 4)
        sqlite3_bind_int64(stmt, 4, q->from - BEFORE_NS);
    while ((status = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (!rows++) {
            fprintf(out, "\n## %s\n\n", p->title);
            writeHeader(stmt, out);
        }
        writeRow(stmt, out);
    }
    if (status == SQLITE_DONE && !rows && p->none)
        fprintf(out, "\n## %s\n\n%s\n", p->title, p->none);
    if (status != SQLITE_DONE)
        snprintf(why, size, "the file cannot be read: %s", sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    return status == SQLITE_DONE ? 0 : -1;
}

int ebpfMonHistoryWriteReport(const ebpfMonHistoryQuestion *q, FILE *out, char *why, size_t size)
{
    sqlite3 *db = ebpfMonHistoryStoreOpenReader(q->file, why, size);
    char from[40], to[40];
    int status = db ? 0 : -1;

    if (!db)
        return -1;
    ebpfMonHistoryFormatTime(q->from, 0, from, sizeof(from));
    ebpfMonHistoryFormatTime(q->to, 0, to, sizeof(to));
    fprintf(out, "# %s to %s\n", from, to);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == 0; i++)
        status = writePart(db, &parts[i], q, out, why, size);
    sqlite3_close(db);
    return status;
}
