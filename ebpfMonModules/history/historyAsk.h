/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to a file of the history, for the program ebpfMonHistory. One thread. */
#ifndef EBPFMON_HISTORYASK_H
#define EBPFMON_HISTORYASK_H

#include <stdio.h>
#include <stdint.h>
#include <sqlite3.h>

typedef enum {
    ebpfMonHistoryText, ebpfMonHistoryJson, ebpfMonHistoryCsv, ebpfMonHistoryCaPutLog,
    ebpfMonHistoryOtlp, /* historyWhy.h only */
    ebpfMonHistoryHtml /* historyReport.h only */
} ebpfMonHistoryForm;

#define EBPFMON_HISTORY_ALSO 7

typedef struct {
    const char *file;
    const char *also[EBPFMON_HISTORY_ALSO]; /* historyWhy.h only: files of other hosts; NULL: no more */
    const char *pv, *user, *host, *ioc, *value, *kind; /* patterns with * and ?; NULL: any */
    int64_t from, to;      /* ns since 1970; 0: open */
    unsigned most;         /* rows: the newest ones; 0: all */
    int automatic;         /* nonzero: also what IOCs wrote by themselves */
    int unexpected;        /* nonzero: only puts that the rules did not expect */
    int failed;            /* nonzero: only puts that were denied, or wrote nothing for another reason */
    ebpfMonHistoryForm form;
    int isReport;          /* nonzero: historyReport.h */
    const char *process;   /* a part of what is known of the writer and the way, such as "caput"; NULL: any */
    /* called now and then while it is looked for; nonzero: give up. NULL: nothing */
    int (*isStopping)(void *arg);
    void *arg;
} ebpfMonHistoryQuestion;

/* Reads a time: "2026-11-28 03:10:05.5", "2026-11-28", "03:10" (the last one that is over), "-2h", "-90m", "-30s",
 * "-3d", "now", "today", "yesterday". "now": ns since 1970. 0, or -1: it is none of these, or no such time. Times are
 * local times, but "2026-11-28T03:10:05Z". isEnd: of a local time that comes twice the last one, else the first. */
int ebpfMonHistoryParseTime(const char *text, int64_t now, int isEnd, int64_t *time);

/* The end of a time that begins at "from" (0: with the file). A "03:10" is the last one that is over; if that is
 * before "from", the next one. */
int ebpfMonHistoryParseEnd(const char *text, int64_t now, int64_t from, int64_t *to);

/* The same; also "03:10..03:20". Without dots only *from is set. */
int ebpfMonHistoryParseRange(const char *text, int64_t now, int64_t *from, int64_t *to);

/* The name by which the history has a PV: without ".VAL". */
const char *ebpfMonHistoryNamePv(const char *pv, char *buf, size_t size);

/* Calls "take" for each row, the oldest first. The result is that of ebpfMonHistoryAsk. */
long ebpfMonHistoryEach(const ebpfMonHistoryQuestion *question, void (*take)(void *arg, sqlite3_stmt *row), void *arg,
                        char *why, size_t size);

/* Writes the answer, the oldest row first. Gaps in that time are among them, whatever is
 * asked. Returns the number of rows but for these; -1: "why" says what is wrong. */
long ebpfMonHistoryAsk(const ebpfMonHistoryQuestion *question, FILE *out, char *why, size_t size);

#endif
