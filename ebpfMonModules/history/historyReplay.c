/* SPDX-License-Identifier: BSD-3-Clause */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <stdio.h>
#include <string.h>

#include <dbAccess.h>
#include <epicsExit.h>
#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/worker.h"
#include "history/historyAsk.h"
#include "history/historyReplay.h"
#include "history/historyRow.h"
#include "history/historyStore.h"
#include "model/ops.h"
#include "model/published.h"

#define PERIOD   0.2          /* s between two looks */
#define EPOCH_NS (POSIX_TIME_AT_EPICS_EPOCH * 1000000000ll)
#define PUTS     "SELECT sum(n) FROM rows WHERE kind = 'put' AND automatic IN (0, 1) AND time <= ?1"
#define STEPS    "FROM (SELECT time FROM rows WHERE automatic IN (0, 1) AND kind IN ('put', 'event') AND time "

typedef struct {
    const char *record;
    DBADDR      address;
} field;

/* One per process, as the monitor that it replaces. The thread's own after the start. */
static struct {
    sqlite3  *db;             /* NULL: nothing is replayed */
    char      file[256], prefix[40];
    ebpfMonOps ops;           /* those of the monitor, but for its start */
    ebpfMonMonitorOps monitor;
    ebpfMonSharedWorker worker;
    field     time, speed, step;
    int64_t   clock, shown;   /* ns since 1970: of the PVs, and what was published last */
    int64_t   end;            /* of the file */
    char      text[MAX_STRING_SIZE]; /* the clock as the PV has it */
} replay = { .time = { "REPLAY_TIME" }, .speed = { "REPLAY_SPEED" }, .step = { "REPLAY_STEP" }, .shown = -1 };

static sqlite3_stmt *prepare(const char *sql, int64_t number)
{
    sqlite3_stmt *stmt = NULL;

    if (sqlite3_prepare_v2(replay.db, sql, -1, &stmt, NULL) == SQLITE_OK)
        sqlite3_bind_int64(stmt, 1, number);
    return stmt;
}

/* The number of the first row; -1: there is none. */
static int64_t findNumber(const char *sql, int64_t first, int64_t second)
{
    sqlite3_stmt *stmt = prepare(sql, first);
    int64_t number = -1;

    sqlite3_bind_int64(stmt, 2, second);
    if (stmt && sqlite3_step(stmt) == SQLITE_ROW)
        number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return number;
}

static epicsTimeStamp makeStamp(int64_t ns)
{
    ns -= EPOCH_NS;
    return (epicsTimeStamp){ .secPastEpoch = (epicsUInt32)(ns / 1000000000), .nsec = (epicsUInt32)(ns % 1000000000) };
}

/* --- what was published then --- */

static ebpfMonPutResult findResult(const char *name)
{
    for (int r = ebpfMonPutOk; r <= ebpfMonPutUnwritten; r++)
        if (strcmp(ebpfMonPutResultName((ebpfMonPutResult)r), name) == 0)
            return (ebpfMonPutResult)r;
    return ebpfMonPutUnknown;
}

#define COPY(to, column) ebpfMonTextCopy(put->to, sizeof(put->to), ebpfMonHistoryRowText(row, column))

static void readPut(sqlite3_stmt *row, ebpfMonPut *put)
{
    int64_t time = sqlite3_column_int64(row, ebpfMonAtTime);

    memset(put, 0, sizeof(*put));
    put->time = makeStamp(time);
    put->at = (uint64_t)time; /* only its order counts */
    COPY(ioc, ebpfMonAtIoc);
    COPY(pv, ebpfMonAtPv);
    COPY(val, ebpfMonAtValue);
    COPY(old, ebpfMonAtOld);
    COPY(user, ebpfMonAtUser);
    COPY(host, ebpfMonAtHost);
    COPY(peer, ebpfMonAtPeer);
    COPY(who, ebpfMonAtWho);
    COPY(origin, ebpfMonAtOrigin);
    COPY(rule, ebpfMonAtReason);
    put->hasOld = sqlite3_column_type(row, ebpfMonAtOld) != SQLITE_NULL;
    put->oldCount = -1;
    put->unexpected = put->rule[0] != 0;
    put->result = findResult(ebpfMonHistoryRowText(row, ebpfMonAtResult));
    put->through = sqlite3_column_int(row, ebpfMonAtAutomatic) ? ebpfMonByLink :
                   strncmp(put->origin, "PVA", 3) == 0 ? ebpfMonByPva : ebpfMonByCa;
}

/* Gives the newest puts at this time to "keep", the oldest first. */
static void keepPuts(const char *where, int most, void (*keep)(const ebpfMonPut *put))
{
    static ebpfMonPut put; /* the thread's; too large for its stack */
    char sql[800];
    sqlite3_stmt *row;

    snprintf(sql, sizeof(sql), "SELECT * FROM (SELECT " EBPFMON_HISTORY_COLUMNS ", id FROM rows WHERE %s "
             "AND kind = 'put' AND time <= ?1 ORDER BY time DESC, id DESC LIMIT %d) ORDER BY time, id", where, most);
    row = prepare(sql, replay.clock);
    while (row && sqlite3_step(row) == SQLITE_ROW) {
        readPut(row, &put);
        keep(&put);
    }
    sqlite3_finalize(row);
}

static void keepPut(const ebpfMonPut *put)
{
    ebpfMonPublishedKeepPut(ebpfMonPublishedLock(), put);
    ebpfMonPublishedUnlock();
}

static void forgetPuts(int64_t automatic, int64_t all)
{
    ebpfMonPublished *p = ebpfMonPublishedLock();

    p->puts.all.kept = 0; /* the order stays: it has each place once */
    for (int i = 0; i < ebpfMonPutKinds; i++)
        p->puts.of[i].kept = 0;
    memset(&p->unexpected, 0, sizeof(p->unexpected));
    p->puts.count = (uint64_t)all;
    p->puts.automatic = (uint64_t)automatic;
    ebpfMonPublishedUnlock();
}

static void showEvents(void)
{
    sqlite3_stmt *row = prepare("SELECT * FROM (SELECT time, value, id FROM rows WHERE kind = 'event' "
                                "AND kind <> 'put' AND time <= ?1 ORDER BY time DESC, id DESC LIMIT 50) "
                                "ORDER BY time, id", replay.clock);
    unsigned count = 0;

    while (row && sqlite3_step(row) == SQLITE_ROW && count < EBPFMON_HEALTH_EVENTS) {
        ebpfMonHealth *health = &ebpfMonPublishedLock()->health;
        char time[40];

        ebpfMonHistoryFormatTime(sqlite3_column_int64(row, 0), 0, time, sizeof(time));
        snprintf(health->event[count], sizeof(health->event[count]), "%s %s", time, ebpfMonHistoryRowText(row, 1));
        health->eventHead = count;
        health->events = ++count;
        ebpfMonPublishedUnlock();
    }
    sqlite3_finalize(row);
    if (!count) {
        ebpfMonPublishedLock()->health.events = 0;
        ebpfMonPublishedUnlock();
    }
}

/* As historyFreezer.c writes it. A history that is no frozen file has no such rows. */
static void readIoc(sqlite3_stmt *row, ebpfMonIocRow *ioc)
{
    const char *value = ebpfMonHistoryRowText(row, 1), *behind;
    char level[20] = "";
    int pid = 0;

    memset(ioc, 0, sizeof(*ioc));
    ebpfMonTextCopy(ioc->name, sizeof(ioc->name), ebpfMonHistoryRowText(row, 0));
    behind = strstr(value, ": process ");
    if (behind)
        sscanf(behind, ": process %d, EPICS %39[^,], %u records, level %19[^,], %159[^\n]", &pid, ioc->version,
               &ioc->records, level, ioc->note);
    ioc->pid = pid;
    for (int i = ebpfMonLevelOff; i <= ebpfMonLevelTrace; i++)
        if (strcmp(ebpfMonLevelName((ebpfMonLevel)i), level) == 0)
            ioc->level = (ebpfMonLevel)i;
}

static void showIocs(void)
{
    sqlite3_stmt *row = prepare("SELECT ioc, value FROM rows WHERE kind = 'ioc' AND kind <> 'put' ORDER BY id", 0);
    ebpfMonIocRow ioc;
    unsigned count = 0;

    while (row && sqlite3_step(row) == SQLITE_ROW && count < EBPFMON_IOCS_MAX) {
        ebpfMonPublished *p;

        readIoc(row, &ioc);
        p = ebpfMonPublishedLock();
        p->iocs.ioc[count++] = ioc;
        p->iocs.count = p->iocs.rows = count;
        ebpfMonPublishedUnlock();
    }
    sqlite3_finalize(row);
}

static void notifyGroups(void)
{
    static const ebpfMonGroup groups[] = {
        ebpfMonGroupIocs, ebpfMonGroupPuts, ebpfMonGroupClientPuts, ebpfMonGroupAutoPuts, ebpfMonGroupUnexpected,
        ebpfMonGroupHealth,
    };

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        ebpfMonPublished *p = ebpfMonPublishedLock();

        p->time[groups[i]] = makeStamp(replay.clock); /* also an earlier one than before */
        ebpfMonPublishedUnlock();
        ebpfMonPublishedNotify(groups[i]);
    }
}

static void showTime(void)
{
    char message[200];

    if (replay.shown >= 0 && replay.clock >= replay.shown &&
        findNumber("SELECT 1 FROM rows WHERE automatic IN (0, 1) AND time > ?1 AND time <= ?2 LIMIT 1", replay.shown,
                   replay.clock) < 0) {
        replay.shown = replay.clock;
        return;
    }
    replay.shown = replay.clock;
    forgetPuts(findNumber("SELECT sum(n) FROM rows WHERE kind = 'put' AND automatic = 1 AND time <= ?1",
                          replay.clock, 0),
               findNumber(PUTS, replay.clock, 0));
    keepPuts("automatic = 0", EBPFMON_PUTS_MAX, keepPut);
    keepPuts("automatic = 1", EBPFMON_PUTS_MAX, keepPut);
    keepPuts("reason IS NOT NULL", EBPFMON_UNEXPECTED_MAX, ebpfMonPublishedAddUnexpected);
    showEvents();
    notifyGroups();
    snprintf(message, sizeof(message), "replays %.150s", replay.file);
    ebpfMonPublishedSetState(ebpfMonRunning, message);
}

/* --- the clock --- */

static double getNumber(field *f)
{
    double number = 0;
    long count = 1;

    return dbGetField(&f->address, DBR_DOUBLE, &number, NULL, &count, NULL) ? 0 : number;
}

static void showClock(void)
{
    ebpfMonHistoryFormatTime(replay.clock, 0, replay.text, sizeof(replay.text));
    dbPutField(&replay.time.address, DBR_STRING, replay.text, 1);
}

/* A time that is none is replaced by the one before; one without a day is the last one in the file. */
static void takeTime(void)
{
    char text[MAX_STRING_SIZE] = "";
    long count = 1;

    if (dbGetField(&replay.time.address, DBR_STRING, text, NULL, &count, NULL) || strcmp(text, replay.text) == 0)
        return;
    ebpfMonHistoryParseTime(text, replay.end, 0, &replay.clock);
    showClock();
}

/* So many puts or events ahead, or back if it is less than 0. */
static void takeStep(void)
{
    double steps = getNumber(&replay.step);
    const epicsInt32 none = 0;
    int64_t time;

    if (!(steps >= 1 || steps <= -1))
        return;
    dbPutField(&replay.step.address, DBR_LONG, &none, 1);
    time = steps > 0 ?
        findNumber("SELECT max(time) " STEPS "> ?1 ORDER BY time LIMIT ?2)", replay.clock, (int64_t)steps) :
        findNumber("SELECT min(time) " STEPS "< ?1 ORDER BY time DESC LIMIT ?2)", replay.clock, (int64_t)-steps);
    if (time <= 0) /* there is none */
        return;
    replay.clock = time;
    showClock();
}

static void runReplay(ebpfMonWorker *worker, void *arg)
{
    uint64_t before = ebpfMonClockMonotonic();

    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t now = ebpfMonClockMonotonic();
        double ahead = getNumber(&replay.speed) * (double)(now - before);

        before = now;
        takeTime();
        takeStep();
        if (ahead > 0) {
            replay.clock += (int64_t)ahead;
            showClock();
        }
        showTime();
        ebpfMonWorkerGiveSign(worker);
        ebpfMonWorkerWait(worker, PERIOD);
    }
}

static void stopReplay(void *arg)
{
    ebpfMonSharedWorkerStop(&replay.worker, 2);
}

static int findField(field *f)
{
    char name[80];

    snprintf(name, sizeof(name), "%s%s", replay.prefix, f->record);
    if (dbNameToAddr(name, &f->address) == 0)
        return 0;
    errlogSevPrintf(errlogMajor, "ebpfMonReplay: there is no %s. Load ebpfMonReplay.db with this prefix\n", name);
    return -1;
}

/* Instead of that of the monitor. */
static long startReplay(void *arg)
{
    if (findField(&replay.time) || findField(&replay.speed) || findField(&replay.step)) {
        ebpfMonPublishedSetState(ebpfMonFailed, "there is no ebpfMonReplay.db");
        return -1;
    }
    showIocs();
    showClock();
    if (ebpfMonSharedWorkerSet(&replay.worker, ebpfMonWorkerStart("ebpfMonReplay", epicsThreadPriorityLow, runReplay,
                                                                  NULL)))
        return -1;
    epicsAtExit(stopReplay, NULL);
    return 0;
}

int ebpfMonHistoryReplay(const char *file, const char *prefix, char *why, size_t size)
{
    if (replay.db || !file || !prefix) {
        snprintf(why, size, "give a file of the history, and the prefix of the PVs, once");
        return -1;
    }
    snprintf(replay.file, sizeof(replay.file), "%s", file);
    snprintf(replay.prefix, sizeof(replay.prefix), "%s", prefix);
    replay.db = ebpfMonHistoryStoreOpenReader(file, why, size);
    if (!replay.db)
        return -1;
    replay.clock = replay.end = findNumber("SELECT max(time) FROM rows WHERE automatic IN (0, 1)", 0, 0);
    if (replay.clock <= 0 || findNumber(PUTS, replay.end, 0) < 0) { /* which reads each put */
        snprintf(why, size, "%.100s has no rows of a history, or is damaged: repair it with sqlite3 .recover", file);
        sqlite3_close(replay.db);
        replay.db = NULL;
        return -1;
    }
    ebpfMonSharedWorkerInit(&replay.worker);
    replay.ops = *ebpfMonOpsGet();
    replay.monitor = *replay.ops.monitor;
    replay.monitor.start = startReplay;
    replay.ops.monitor = &replay.monitor;
    ebpfMonOpsSet(&replay.ops);
    return 0;
}
