/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <time.h>

#include "history/historyRow.h"

#define SECOND 1000000000

static const char *const names[ebpfMonAtCount] = {
    "time", "kind", "automatic", "ioc", "pv", "value", "old", "user", "host", "peer", "who", "origin", "result",
    "reason", "n", "first", "min", "max", "chain", "source", "trace", "hash",
};

void ebpfMonHistoryFormatTime(int64_t ns, int isIso, char *buf, size_t size)
{
    time_t seconds = (time_t)(ns / SECOND);
    struct tm tm;
    size_t used;

    if (isIso)
        gmtime_r(&seconds, &tm);
    else
        localtime_r(&seconds, &tm);
    used = strftime(buf, size, isIso ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &tm);
    if (isIso)
        snprintf(buf + used, size - used, ".%09ldZ", (long)(ns % SECOND));
    else
        snprintf(buf + used, size - used, ".%03ld", (long)(ns % SECOND / 1000000));
}

const char *ebpfMonHistoryRowText(sqlite3_stmt *row, int at)
{
    const unsigned char *text = sqlite3_column_text(row, at);

    return text ? (const char *)text : "";
}

static void writeCount(sqlite3_stmt *row, FILE *out)
{
    char first[40];

    if (sqlite3_column_int64(row, ebpfMonAtN) < 2)
        return;
    ebpfMonHistoryFormatTime(sqlite3_column_int64(row, ebpfMonAtFirst), 0, first, sizeof(first));
    fprintf(out, " \303\227%lld since %s", (long long)sqlite3_column_int64(row, ebpfMonAtN), first); /* × */
    if (sqlite3_column_type(row, ebpfMonAtLeast) != SQLITE_NULL)
        fprintf(out, ", %g to %g", sqlite3_column_double(row, ebpfMonAtLeast),
                sqlite3_column_double(row, ebpfMonAtMost));
}

static void writePut(sqlite3_stmt *row, FILE *out)
{
    const char *old = ebpfMonHistoryRowText(row, ebpfMonAtOld), *who = ebpfMonHistoryRowText(row, ebpfMonAtWho);
    const char *origin = ebpfMonHistoryRowText(row, ebpfMonAtOrigin), *result, *reason;

    fprintf(out, " %s %s%s%s", ebpfMonHistoryRowText(row, ebpfMonAtPv), old, old[0] ? " -> " : "",
            ebpfMonHistoryRowText(row, ebpfMonAtValue));
    if (who[0])
        fprintf(out, " by %s", who);
    if (origin[0])
        fprintf(out, " (%s)", origin);
    writeCount(row, out);
    result = ebpfMonHistoryRowText(row, ebpfMonAtResult);
    if (strcmp(result, "ok") != 0)
        fprintf(out, " [%s]", result);
    reason = ebpfMonHistoryRowText(row, ebpfMonAtReason);
    if (reason[0])
        fprintf(out, " UNEXPECTED: %s", reason);
}

void ebpfMonHistoryRowWriteText(sqlite3_stmt *row, FILE *out)
{
    const char *kind = ebpfMonHistoryRowText(row, ebpfMonAtKind);
    const char *value = ebpfMonHistoryRowText(row, ebpfMonAtValue), *pv = ebpfMonHistoryRowText(row, ebpfMonAtPv);
    const char *ioc = ebpfMonHistoryRowText(row, ebpfMonAtIoc);
    char time[40], since[40];

    ebpfMonHistoryFormatTime(sqlite3_column_int64(row, ebpfMonAtTime), 0, time, sizeof(time));
    ebpfMonHistoryFormatTime(sqlite3_column_int64(row, ebpfMonAtFirst), 0, since, sizeof(since));
    fputs(time, out);
    if (strcmp(kind, "put") == 0)
        writePut(row, out);
    else if (strcmp(kind, "gap") == 0 && !sqlite3_column_int64(row, ebpfMonAtFirst))
        fprintf(out, " NOT KNOWN before: %s", value);
    else if (strcmp(kind, "gap") == 0)
        fprintf(out, " NOT WATCHED since %s: %s", since, value);
    else if (strcmp(kind, "lost") == 0)
        fprintf(out, " LOST since %s: %lld %s", since, (long long)sqlite3_column_int64(row, ebpfMonAtN), value);
    else if (strcmp(kind, "chain") == 0)
        fprintf(out, " chain of %s in %s: %s", pv, ioc, value);
    else if (strcmp(kind, "minute") == 0)
        fprintf(out, " %s%s%s: %s", ioc, ioc[0] && pv[0] ? " " : "", pv, value);
    else
        fprintf(out, " %s", value);
    fputc('\n', out);
}

/* As the text lines of caPutLog: date, time, host, user, PV, new= and old=. */
void ebpfMonHistoryRowWriteCaPutLog(sqlite3_stmt *row, FILE *out)
{
    time_t seconds = (time_t)(sqlite3_column_int64(row, ebpfMonAtTime) / SECOND);
    const char *old;
    char time[40];
    struct tm tm;

    localtime_r(&seconds, &tm);
    strftime(time, sizeof(time), "%d-%b-%y %H:%M:%S", &tm);
    old = ebpfMonHistoryRowText(row, ebpfMonAtOld);
    fprintf(out, "%s %s %s %s new=%s old=%s\n", time, ebpfMonHistoryRowText(row, ebpfMonAtHost),
            ebpfMonHistoryRowText(row, ebpfMonAtUser), ebpfMonHistoryRowText(row, ebpfMonAtPv),
            ebpfMonHistoryRowText(row, ebpfMonAtValue), old[0] ? old : "?");
}

void ebpfMonHistoryRowAddJson(sqlite3_stmt *row, ebpfMonJson *json)
{
    int64_t at = sqlite3_column_int64(row, ebpfMonAtTime);
    char time[40];

    for (int i = 0; i < ebpfMonAtCount; i++) {
        int type = sqlite3_column_type(row, i);

        if (i == ebpfMonAtTime || i == ebpfMonAtFirst) {
            ebpfMonHistoryFormatTime(sqlite3_column_int64(row, i), 1, time, sizeof(time));
            if (i == ebpfMonAtTime || sqlite3_column_int64(row, i) != at)
                ebpfMonJsonAddText(json, names[i], time);
        } else if (i == ebpfMonAtAutomatic) {
            ebpfMonJsonAddBool(json, names[i], sqlite3_column_int(row, i));
        } else if (type == SQLITE_INTEGER) {
            ebpfMonJsonAddInteger(json, names[i], sqlite3_column_int64(row, i));
        } else if (type == SQLITE_FLOAT) {
            ebpfMonJsonAddNumber(json, names[i], NULL, sqlite3_column_double(row, i));
        } else if (type == SQLITE_TEXT) {
            ebpfMonJsonAddText(json, names[i], ebpfMonHistoryRowText(row, i));
        }
    }
}

void ebpfMonHistoryRowWriteJson(sqlite3_stmt *row, ebpfMonJson *json, FILE *out)
{
    static char buf[512 << 10]; /* a record of a frozen file has 64 KB, which JSON makes more */

    if (ebpfMonJsonBegin(json, buf, sizeof(buf)))
        return;
    ebpfMonHistoryRowAddJson(row, json);
    fwrite(buf, 1, ebpfMonJsonEnd(json), out);
    fputc('\n', out);
}

/* RFC 4180 */
static void writeCsvText(const char *text, FILE *out)
{
    if (!strpbrk(text, "\",\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    fputc('"', out);
}

void ebpfMonHistoryRowWriteCsvHeader(FILE *out)
{
    for (int i = 0; i < ebpfMonAtCount; i++)
        fprintf(out, "%s%s", names[i], i + 1 < ebpfMonAtCount ? "," : "\r\n");
}

void ebpfMonHistoryRowWriteCsv(sqlite3_stmt *row, FILE *out)
{
    char time[40];

    for (int i = 0; i < ebpfMonAtCount; i++) {
        if (i)
            fputc(',', out);
        if (i == ebpfMonAtTime || i == ebpfMonAtFirst) {
            ebpfMonHistoryFormatTime(sqlite3_column_int64(row, i), 1, time, sizeof(time));
            writeCsvText(time, out);
        } else {
            writeCsvText(ebpfMonHistoryRowText(row, i), out);
        }
    }
    fputs("\r\n", out);
}
