/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps puts, events of IOCs, kept traces, and the times at which nobody watched. The threads of the core only copy a
 * row into a queue; one thread writes the file. If the file cannot be written, the rows of that time are lost and
 * counted, and a row "lost" says how many, as soon as it can be written again.
 */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alarm.h>
#include <dbAccess.h>
#include <dbDefs.h>
#include <devSup.h>
#include <epicsExport.h>
#include <epicsThread.h>
#include <errlog.h>
#include <lsoRecord.h>
#include <recGbl.h>

#include "access/guard.h"
#include "clients/clients.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "ebpfMonModule.h"
#include "export/shared/recordQueue.h"
#include "history/historyFound.h"
#include "history/historyFreezer.h"
#include "history/historyMinutes.h"
#include "history/historyReplay.h"
#include "history/historyRuns.h"
#include "history/historyStore.h"
#include "history/packetNotes.h"
#include "model/put.h"
#include "record/shellCommand.h"

#define EBPFMON_HISTORY_MEGABYTES 1024
#define EBPFMON_HISTORY_DAYS      30

typedef struct {
    char     file[256];
    unsigned megabytes, days;
    int      leavesOutValues, leavesOutNames; /* nonzero: values, or users and hosts, are not kept */
} ebpfMonHistoryConf;

typedef struct {
    int      state;   /* 0 off, 1 writes, 2 cannot write */
    uint64_t rows;    /* in the file */
    uint64_t lost;    /* since the start */
    int      losing;  /* alarm severity: MAJOR_ALARM if it has grown in the last minute */
    char     losingText[240];
    char     message[320];
} ebpfMonHistoryValues;

#define QUEUE_BYTES (16u << 20)
#define BATCH_BYTES (1u << 20)
#define PERIOD      0.5           /* s; a put is in the file after this */
#define SIGN_NS     30000000000ull /* ns; so often the file says that the monitor runs */
#define OPEN_NS     3000000000ull /* ns; so often runs that may be over are looked at, also if nothing comes */
#define LOSING_NS   60000000000ull /* an alarm lasts so long after the last loss */
#define RETRY_NS    10000000000ull
#define EPOCH_NS    (POSIX_TIME_AT_EPICS_EPOCH * 1000000000ull)
#define TEXTS       (1 + EBPFMON_HISTORY_TEXTS)
#define CHAIN_BYTES 32            /* of a chain as text */
#define TREE_BYTES  3000
#define TRACE_BYTES 33
#define HASH_BYTES  17
#define HEADER      16            /* bytes of a packet's payload: the header of a CA message; of PVA that and two ids */
#define WHOLE       65536
#define TREES       10            /* a second, of chains that are kept with their records … */
#define TREES_AT_ONCE 100         /* … and so many more after a rest */

typedef struct {
    const ebpfMonModule *module;
    ebpfMonHistoryConf conf;      /* not changed while the thread runs; file "": off */
    ebpfMonSharedWorker worker;
    ebpfMonRecordQueue *queue;
    ebpfMonHistoryValues shown;   /* under the lock of the published values */
    uint64_t unixOffset;          /* from monotonic time to that of the texts of chains; fixed, so that each chain has
                                   * one text */
    ebpfMonHistoryMinutes *minutes; /* publishing thread, as the next one */
    uint64_t clockOffset;         /* from monotonic time to that of the host, at the last look; 0: there was none */
    double trees;                 /* that may be kept now; this one and the next: event thread */
    uint64_t treesAt;             /* monotonic ns */
    /* the thread's own */
    char why[160];                /* the newest trouble, also when it is over */
    ebpfMonHistoryValues values;
    ebpfMonHistoryStore *store;   /* NULL: the file cannot be written now */
    ebpfMonHistoryRuns  *runs;
    ebpfMonHistoryFreezer *freezer; /* fixed before the thread runs; NULL: off */
    ebpfMonHistoryPackets *packets; /* the same */
    ebpfMonPacketNotes *notes;      /* the same; NULL: without packets, too */
    int      payload;               /* the same; -1: no packets */
    uint64_t retryAt, signAt;     /* monotonic ns */
    unsigned openRuns;            /* after the last look; its thread only */
    uint64_t inHand;              /* rows of the present transaction */
    uint64_t told;                /* of values.lost: rows for which a row "lost" is in the file … */
    uint64_t telling;             /* … or will be, if the present transaction succeeds */
    uint64_t lostBefore, lostAt;  /* values.lost at the last look; when it grew last (monotonic ns), 0: never */
    uint64_t lostSince;           /* ns since 1970 */
    int      hasBegun;            /* the row "start" or "gap" is written */
    int      isBroken;            /* the present transaction has failed */
    uint8_t  batch[BATCH_BYTES];
} ebpfMonHistory;

/* "module" stays the caller's. Never freed. NULL without memory. */
static ebpfMonHistory *newHistory(const ebpfMonModule *module)
{
    ebpfMonHistory *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->module = module;
    ebpfMonSharedWorkerInit(&h->worker);
    snprintf(h->values.message, sizeof(h->values.message), "off: ebpfMonHistoryKeep FILE keeps a history");
    h->shown = h->values;
    return h;
}

/* Where to keep it, before iocInit. megabytes, days: 0 for the default. "leaveOut": "values", "names", both or "". 0;
 * or -1: "why" says what is wrong. */
static int configureFile(ebpfMonHistory *h, const char *file, int megabytes, int days, const char *leaveOut,
                            char *why, size_t size)
{
    if (h->queue) {
        snprintf(why, size, "the monitor runs: call it before iocInit");
        return -1;
    }
    if (!file || file[0] != '/' || strlen(file) >= sizeof(h->conf.file)) {
        snprintf(why, size, "give a file with its whole path, of up to %zu characters", sizeof(h->conf.file) - 1);
        return -1;
    }
    if ((megabytes && megabytes < 4) || megabytes > 1000000 || days < 0 || days > 36500) {
        snprintf(why, size, "give 4 to 1000000 MB, and up to 36500 days; 0: the default");
        return -1;
    }
    snprintf(h->conf.file, sizeof(h->conf.file), "%s", file);
    h->conf.megabytes = megabytes ? (unsigned)megabytes : EBPFMON_HISTORY_MEGABYTES;
    h->conf.days = days ? (unsigned)days : EBPFMON_HISTORY_DAYS;
    h->conf.leavesOutValues = leaveOut && strstr(leaveOut, "values");
    h->conf.leavesOutNames = leaveOut && strstr(leaveOut, "names");
    return 0;
}

/* Keeps the newest rows in memory, each put by itself, and packets; and writes them to files of this folder when
 * something happens (historyFreezer.h); before iocInit. megabytes: 0 for the default. packets: "none"; "payload": they
 * are kept whole; NULL or "": headers. 0; or -1: "why" says what is wrong. */
static int configureRing(ebpfMonHistory *h, const char *folder, int megabytes, const char *packets, char *why,
                           size_t size)
{
    int isWhole = packets && strcmp(packets, "payload") == 0, isNone = packets && strcmp(packets, "none") == 0;

    if (packets && packets[0] && !isWhole && !isNone) {
        snprintf(why, size, "what of packets? \"none\", \"payload\", or nothing: headers");
        return -1;
    }
    if (h->queue || h->freezer) {
        snprintf(why, size, "call it once, before iocInit");
        return -1;
    }
    h->payload = isNone ? -1 : isWhole ? WHOLE : HEADER;
    h->freezer = ebpfMonHistoryFreezerNew(folder, megabytes, why, size);
    return h->freezer ? 0 : -1;
}

/* Requests such a file. Any thread. -1: nothing is kept in memory. */
static int freezeHistory(ebpfMonHistory *h, const char *note)
{
    if (!h->freezer || !h->queue)
        return -1;
    ebpfMonHistoryFreezerRequest(h->freezer, note);
    return 0;
}

/* --- the threads of the core --- */

static uint64_t toUnixNs(const epicsTimeStamp *time)
{
    return time->secPastEpoch * 1000000000ull + time->nsec + EPOCH_NS;
}

static void queueRow(ebpfMonHistory *h, uint64_t time, int automatic, const char *const text[TEXTS])
{
    uint8_t buf[EBPFMON_HISTORY_PACKED];
    size_t length = ebpfMonHistoryRowPack(time, automatic, text, buf);

    /* automatic puts of one IOC do not push out what people write */
    ebpfMonRecordQueueAdd(h->queue, automatic ? ebpfMonRecordQueueShareOf(text[1]) : 0, buf, length);
}

/* A chain as text. Returns "buf"; NULL: it is not known. */
static const char *nameChain(const ebpfMonHistory *h, const ebpfMonModuleChain *chain, char buf[CHAIN_BYTES])
{
    if (!chain->begin)
        return NULL;
    snprintf(buf, CHAIN_BYTES, "%016llx.%x", (unsigned long long)(chain->begin + h->unixOffset), chain->thread);
    return buf;
}

/* As text. NULL: it is not known. */
static const char *nameTrace(const ebpfMonPut *put, char buf[TRACE_BYTES])
{
    size_t used = 0;

    if (!put->messageTrace[0] && memcmp(put->messageTrace, put->messageTrace + 1, sizeof(put->messageTrace) - 1) == 0)
        return NULL;
    for (unsigned i = 0; i < sizeof(put->messageTrace); i++)
        used += (size_t)snprintf(buf + used, TRACE_BYTES - used, "%02x", put->messageTrace[i]);
    return buf;
}

/* Of a put whose value is cut, so that two of them can be compared; as in put logs. NULL: it is not known. */
static const char *nameHash(const ebpfMonPut *put, char buf[HASH_BYTES])
{
    size_t length = strlen(put->val);

    if (!put->hash || length < 3 || strcmp(put->val + length - 3, "...") != 0)
        return NULL;
    snprintf(buf, HASH_BYTES, "%016llx", (unsigned long long)put->hash);
    return buf;
}

/* The way without persons and addresses: of "CA 10.0.0.7:4001 uid mila" only "CA", and of a link's way all up to
 * "put by mila@console". */
static void hideNames(const char *origin, char *buf, size_t size)
{
    const char *link = strstr(origin, "link ");
    const char *from = link && link - origin >= 3 && strncmp(link - 3, "CA ", 3) == 0 ? link - 3 : link ? link : origin;
    const char *by = strstr(from, ", put by ");
    size_t length = !link ? strcspn(from, " ") : by ? (size_t)(by - from) : strlen(from);

    snprintf(buf, size, "%.*s", (int)length, from);
}

static void addPut(void *arg, const ebpfMonModulePut *put)
{
    ebpfMonHistory *h = arg;
    int noValues = h->conf.leavesOutValues, noNames = h->conf.leavesOutNames;
    char chain[CHAIN_BYTES], source[CHAIN_BYTES], trace[TRACE_BYTES], hash[HASH_BYTES];
    char origin[EBPFMON_ORIGIN_SIZE], reason[100];
    const char *const text[TEXTS] = {
        "put", put->ioc, put->pv, noValues ? NULL : put->value, noValues ? NULL : put->oldValue,
        noNames ? NULL : put->user, noNames ? NULL : put->host, noNames ? NULL : put->peer, noNames ? NULL : put->who,
        noNames ? origin : put->origin, put->result, put->reason && (noNames || noValues) ? reason : put->reason,
        nameChain(h, &put->chain, chain), nameChain(h, &put->source, source), NULL, NULL,
        noNames ? NULL : nameTrace(put->context, trace), noValues ? NULL : nameHash(put->context, hash),
    };

    if (!h->queue)
        return;
    hideNames(put->origin, origin, sizeof(origin));
    snprintf(reason, sizeof(reason), "%.*s", (int)strcspn(put->reason ? put->reason : "", ":"),
             put->reason ? put->reason : ""); /* the rule, without what it says of user or value */
    queueRow(h, toUnixNs(&put->time), put->isAutomatic, text);
}

/* Nonzero: the records of this chain may be kept. A chain with records takes a hundred times the room of one without,
 * and at level trace there are many. */
static int mayKeepTree(ebpfMonHistory *h)
{
    uint64_t now = ebpfMonClockMonotonic();

    h->trees += (double)(now - h->treesAt) / EBPFMON_SECOND_NS * TREES;
    h->treesAt = now;
    if (h->trees > TREES_AT_ONCE)
        h->trees = TREES_AT_ONCE;
    if (h->conf.leavesOutValues || h->conf.leavesOutNames || h->trees < 1)
        return 0;
    h->trees--;
    return 1;
}

/* Whole lines only, and the last one says if there are more. */
static void writeTree(const ebpfMonModuleTrace *trace, char buf[TREE_BYTES])
{
    static const char more[] = "  ... no room for the rest\n";
    size_t length = trace->writeTree(trace, buf, TREE_BYTES);

    if (length < TREE_BYTES - 1)
        return;
    length -= sizeof(more);
    while (length && buf[length - 1] != '\n')
        length--;
    memcpy(buf + length, more, sizeof(more));
}

static void addTrace(void *arg, const ebpfMonModuleTrace *trace)
{
    ebpfMonHistory *h = arg;
    char value[100], chain[CHAIN_BYTES], source[CHAIN_BYTES], tree[TREE_BYTES] = "", steps[64 * CHAIN_BYTES] = "";
    const char *const text[TEXTS] = {
        "chain", trace->ioc, trace->root, value, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        nameChain(h, &trace->chain[0], chain), nameChain(h, &trace->source, source), steps, tree,
    };
    size_t used = 0;

    if (!h->queue)
        return;
    snprintf(value, sizeof(value), "%.3f ms, %u records%s", trace->tookMs, trace->records,
             trace->isIncomplete ? ", incomplete" : "");
    for (unsigned i = 1; i < trace->chains && used + CHAIN_BYTES < sizeof(steps); i++) {
        char step[CHAIN_BYTES];

        nameChain(h, &trace->chain[i], step);
        used += (size_t)snprintf(steps + used, sizeof(steps) - used, "%s%s", used ? " " : "", step);
    }
    if (mayKeepTree(h))
        writeTree(trace, tree);
    queueRow(h, toUnixNs(&trace->time), 1, text); /* at level trace they do not push out what people wrote */
}

/* The IOC of an event: its text has "IOC NAME". Empty: it is about none. */
static void findIocOf(const char *event, char ioc[EBPFMON_NAME_SIZE])
{
    const char *at = strstr(event, "IOC ");
    size_t length;

    ioc[0] = 0;
    if (!at)
        return;
    at += 4;
    length = strcspn(at, " ,");
    length -= length && at[length - 1] == ':';
    snprintf(ioc, EBPFMON_NAME_SIZE, "%.*s", (int)length, at);
}

static void addEvent(ebpfMonHistory *h, uint64_t time, const char *pv, const char *event)
{
    char ioc[EBPFMON_NAME_SIZE];
    const char *const text[TEXTS] = { "event", ioc, pv, event };

    findIocOf(event, ioc);
    queueRow(h, time, 0, text);
}

static void addIocEvent(void *arg, const epicsTimeStamp *time, const char *event)
{
    ebpfMonHistory *h = arg;

    if (h->queue)
        addEvent(h, toUnixNs(time), NULL, event);
}

static void addPacket(void *arg, const ebpfMonModulePacket *packet)
{
    ebpfMonHistory *h = arg;

    ebpfMonHistoryPacketsAdd(h->packets, packet, ebpfMonPacketNotesTake(h->notes));
}

static void addMessage(void *arg, const struct ebpfMonWireEvent *message)
{
    ebpfMonHistory *h = arg;

    if (message)
        ebpfMonPacketNotesAdd(h->notes, message);
    else
        ebpfMonPacketNotesTake(h->notes);
}

static void addMinuteRow(void *arg, int automatic, const char *kind, const char *ioc, const char *pv, const char *value)
{
    ebpfMonHistory *h = arg;
    const char *const text[TEXTS] = { kind, ioc, pv, value };

    if (strcmp(kind, "event") == 0)
        addEvent(h, ebpfMonClockReal(), pv, value);
    else if (strcmp(kind, "client") != 0 || !h->conf.leavesOutNames)
        queueRow(h, ebpfMonClockReal(), automatic, text);
}

/* Times before and after do not go together then, so the history says so. */
static void lookAtClock(ebpfMonHistory *h)
{
    uint64_t offset = ebpfMonClockUnixOffset();
    double ahead = (double)(int64_t)(offset - h->clockOffset) / EBPFMON_SECOND_NS;
    char text[100];

    if (h->clockOffset && (ahead >= 1 || ahead <= -1)) {
        snprintf(text, sizeof(text), ahead > 0 ? "the clock of this host was set ahead by %.1f s, or the host slept" :
                 "the clock of this host was set back by %.1f s", ahead > 0 ? ahead : -ahead);
        addEvent(h, ebpfMonClockReal(), NULL, text);
    }
    h->clockOffset = offset;
}

static void lookEachSecond(void *arg)
{
    ebpfMonHistory *h = arg;

    if (!h->queue)
        return;
    lookAtClock(h);
    ebpfMonHistoryMinutesLook(h->minutes, ebpfMonPublishedLock(), ebpfMonClientsGetValues(), ebpfMonClockMonotonic());
    ebpfMonPublishedUnlock();
}

/* --- the thread that writes --- */

static void setTrouble(ebpfMonHistory *h, const char *why)
{
    char text[sizeof(h->values.message)];

    ebpfMonTextCopy(h->why, sizeof(h->why), why);
    snprintf(text, sizeof(text), "history: %s", why); /* it stands in the light of the host, too */
    if (h->values.state != 2 || strcmp(h->values.message, text) != 0)
        errlogSevPrintf(errlogMajor, "ebpfMon: history %s: %s\n", h->conf.file, why);
    h->values.state = 2;
    memcpy(h->values.message, text, sizeof(text));
}

/* What is in hand cannot be written. */
static void loseRows(ebpfMonHistory *h, const char *why)
{
    if (h->values.lost == h->told)
        h->lostSince = ebpfMonClockReal();
    h->values.lost += h->inHand;
    h->inHand = 0;
    h->isBroken = 1;
    setTrouble(h, why);
    ebpfMonHistoryStoreClose(h->store); /* it is opened again, because the file may be another one by then */
    h->store = NULL;
    h->retryAt = ebpfMonClockMonotonic() + RETRY_NS;
}

static void writeRow(void *arg, const ebpfMonHistoryRow *row)
{
    ebpfMonHistory *h = arg;
    char why[256];

    h->inHand++;
    if (h->isBroken || !h->store) {
        if (h->values.lost == h->told)
            h->lostSince = ebpfMonClockReal();
        h->values.lost += h->inHand;
        h->inHand = 0;
    } else if (ebpfMonHistoryStoreAdd(h->store, row, why, sizeof(why))) {
        loseRows(h, why);
    }
}

static void writeNote(ebpfMonHistory *h, const char *kind, uint64_t from, uint64_t to, uint64_t n, const char *text)
{
    writeRow(h, &(ebpfMonHistoryRow){ .kind = kind, .first = from, .time = to, .n = n, .value = text });
}

/* The first row of this run of the monitor: since when nobody has watched. */
static void noteBegin(ebpfMonHistory *h, uint64_t now)
{
    int isStopped;
    uint64_t alive = ebpfMonHistoryStoreGetAlive(h->store, &isStopped);

    if (h->hasBegun)
        return;
    if (alive > now)
        writeNote(h, "gap", now, now, 1, "the monitor did not run; how long is not known: the clock was set back");
    else if (alive)
        writeNote(h, "gap", alive, now, 1, isStopped ? "the monitor did not run" :
                  "the monitor did not run: it had ended without order. Of the ten minutes before, puts of links may "
                  "be missing");
    else
        writeNote(h, "start", now, now, 1, "the monitor runs");
    h->hasBegun = 1;
}

static void noteLost(ebpfMonHistory *h, uint64_t now)
{
    if (h->values.lost == h->told)
        return;
    h->telling = h->values.lost;
    writeNote(h, "lost", h->lostSince, now, h->values.lost - h->told, "rows that could not be kept");
}

/* Adds what the queue dropped to the losses. */
static void countDropped(ebpfMonHistory *h, uint64_t *dropped)
{
    ebpfMonRecordQueueState state;

    ebpfMonRecordQueueGetState(h->queue, &state);
    if (state.dropped != *dropped && h->values.lost == h->told)
        h->lostSince = ebpfMonClockReal();
    h->values.lost += state.dropped - *dropped;
    *dropped = state.dropped;
}

static void takeRow(ebpfMonHistory *h, const uint8_t *at, size_t length)
{
    ebpfMonHistoryRow row;

    ebpfMonHistoryRowUnpack(at, &row);
    if (h->freezer)
        ebpfMonHistoryFreezerAdd(h->freezer, at, length, &row);
    if (strcmp(row.kind, "put") == 0)
        ebpfMonHistoryRunsNoteChain(h->runs, &row);
    if (row.automatic && strcmp(row.kind, "put") == 0)
        ebpfMonHistoryRunsAdd(h->runs, &row);
    else
        writeRow(h, &row);
}

static void openStore(ebpfMonHistory *h)
{
    char why[256];

    if (h->store || ebpfMonClockMonotonic() < h->retryAt)
        return;
    h->store = ebpfMonHistoryStoreOpen(h->conf.file, h->conf.megabytes, h->conf.days, why, sizeof(why));
    h->retryAt = ebpfMonClockMonotonic() + RETRY_NS;
    if (!h->store)
        setTrouble(h, why);
}

/* One transaction with all that the queue has, up to a batch. Returns the bytes that were read. */
static size_t writeBatch(ebpfMonHistory *h, uint64_t *dropped, int isStop)
{
    size_t used = ebpfMonRecordQueueRead(h->queue, h->batch, sizeof(h->batch));
    uint64_t now = ebpfMonClockReal();
    char why[256];

    openStore(h);
    h->isBroken = 0;
    if (h->store && ebpfMonHistoryStoreBegin(h->store, why, sizeof(why)))
        loseRows(h, why);
    if (h->store)
        noteBegin(h, now);
    countDropped(h, dropped);
    if (h->store)
        noteLost(h, now);
    for (size_t at = 0; at < used;) {
        size_t length;

        memcpy(&length, h->batch + at, sizeof(length));
        takeRow(h, h->batch + at + sizeof(length), length);
        at += sizeof(length) + length;
    }
    h->openRuns = ebpfMonHistoryRunsEnd(h->runs, now, isStop && !used);
    if (!h->store)
        return used;
    if (ebpfMonHistoryStoreEnd(h->store, now, isStop && !used, why, sizeof(why))) {
        loseRows(h, why);
        return used;
    }
    h->inHand = 0;
    h->told = h->telling;
    h->values.state = 1;
    h->values.rows = ebpfMonHistoryStoreCount(h->store);
    snprintf(h->values.message, sizeof(h->values.message), "%s, up to %u MB and %u days", h->conf.file,
             h->conf.megabytes, h->conf.days);
    return used;
}

static void showValues(ebpfMonHistory *h)
{
    uint64_t now = ebpfMonClockMonotonic();

    if (h->values.lost != h->lostBefore)
        h->lostAt = now;
    h->lostBefore = h->values.lost;
    h->values.losing = h->lostAt && now - h->lostAt < LOSING_NS ? MAJOR_ALARM : NO_ALARM;
    snprintf(h->values.losingText, sizeof(h->values.losingText), "%llu rows of the history are lost%s%s",
             (unsigned long long)h->values.lost, h->why[0] ? ": " : "", h->why);
    ebpfMonModuleShowValues(h->module, &h->shown, &h->values, sizeof(h->values));
}

/* The history says in which file the last minutes are, or why they are not. */
static void freezeIfDue(ebpfMonHistory *h, ebpfMonWorker *worker)
{
    char said[400];

    if (ebpfMonHistoryFreezerWork(h->freezer, worker, said, sizeof(said)))
        addEvent(h, ebpfMonClockReal(), NULL, said);
}

static void runHistory(ebpfMonWorker *worker, void *arg)
{
    ebpfMonHistory *h = arg;
    uint64_t dropped = 0;
    int isStopping = 0;

    ebpfMonWorkerWaitsForOthers(worker); /* for the disk */
    while (!isStopping) {
        ebpfMonRecordQueueState state;

        isStopping = ebpfMonWorkerIsStopping(worker);
        ebpfMonRecordQueueGetState(h->queue, &state);
        if (state.used || isStopping || ebpfMonClockMonotonic() >= h->signAt) {
            while (writeBatch(h, &dropped, isStopping))
                ebpfMonWorkerGiveSign(worker);
            h->signAt = ebpfMonClockMonotonic() + (h->openRuns ? OPEN_NS : SIGN_NS);
        }
        if (h->freezer)
            freezeIfDue(h, worker);
        showValues(h);
        if (!isStopping)
            ebpfMonWorkerWait(worker, PERIOD);
    }
    ebpfMonHistoryStoreClose(h->store);
    h->store = NULL;
}

static int startHistory(void *arg, const ebpfMonModuleCore *core)
{
    ebpfMonHistory *h = arg;

    if (!h->conf.file[0])
        return 0;
    h->unixOffset = ebpfMonClockUnixOffset();
    if (!h->runs)
        h->runs = ebpfMonHistoryRunsNew(writeRow, h);
    if (!h->minutes)
        h->minutes = ebpfMonHistoryMinutesNew(addMinuteRow, h);
    if (!h->queue && h->minutes)
        h->queue = ebpfMonRecordQueueNew(QUEUE_BYTES);
    /* packets tell addresses and, in their payload, values */
    if (h->freezer && h->payload >= 0 && !h->conf.leavesOutNames)
        h->packets = ebpfMonHistoryFreezerKeepPackets(h->freezer, h->conf.leavesOutValues ? 0 : (size_t)h->payload);
    if (h->packets && !h->notes)
        h->notes = ebpfMonPacketNotesNew(core->put);
    if (h->freezer && !h->conf.leavesOutNames)
        ebpfMonHistoryFreezerKeepInventory(h->freezer, core->targets);
    if (!h->runs || !h->queue || ebpfMonSharedWorkerSet(&h->worker, ebpfMonWorkerStart("ebpfMonHistory",
                                                        epicsThreadPriorityLow, runHistory, h))) {
        errlogSevPrintf(errlogMajor, "ebpfMon: no memory for the history\n");
        return -1;
    }
    return 0;
}

/* --- PVs, commands, registration --------------------------------------------------------------------------------- */

#define VALUE(member) offsetof(ebpfMonHistoryValues, member)
#define FOUND(member) offsetof(ebpfMonHistoryFound, member)
#define ROW(member)   offsetof(ebpfMonHistoryFoundRow, member)

/* One each per process, because Base calls registrars, commands and device support without a context. */
static ebpfMonHistory *history;
static ebpfMonHistoryFinder *finder;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : &history->shown;
}

static const void *getFound(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonHistoryFinderGet(finder);
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonHistoryFound *found = ebpfMonHistoryFinderGet(finder);

    return index < found->rows ? &found->row[found->rows - 1 - index] : NULL;
}

static ebpfMonPv pvs[] = {
    {"HISTORY_ROW_CNT", 0, getValues, ebpfMonCellCount, VALUE(rows)},
    {"HISTORY_STATE", 0, getValues, ebpfMonCellInt, VALUE(state), 1, .cause = 1 + VALUE(message), .light = 2},
    {"HISTORY_LOST_CNT", 0, getValues, ebpfMonCellCount, VALUE(lost), .severity = 1 + VALUE(losing),
     .cause = 1 + VALUE(losingText), .light = 2},
    {"HISTORY_MSG", 0, getValues, ebpfMonCellText, VALUE(message), 1},
    {"HISTORY_FOUND_MSG", 0, getFound, ebpfMonCellText, FOUND(message), 1},
    {"HISTORY_TEXT", 0, getFound, ebpfMonCellLines, FOUND(text), 1},
    {"HISTORY_TIMES", 0, getRow, ebpfMonCellText, ROW(time)},
    {"HISTORY_PVS", 0, getRow, ebpfMonCellText, ROW(pv)},
    {"HISTORY_OLD_VALUES", 0, getRow, ebpfMonCellText, ROW(old)},
    {"HISTORY_VALUES", 0, getRow, ebpfMonCellText, ROW(value)},
    {"HISTORY_WRITERS", 0, getRow, ebpfMonCellText, ROW(who)},
    {"HISTORY_RESULTS", 0, getRow, ebpfMonCellText, ROW(result)},
    {"HISTORY_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
};

static int startModule(void *arg, const ebpfMonModuleCore *core);
static int stopModule(void *arg, double seconds);

static ebpfMonModule module = {
    .name = "history", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = startModule, .stop = stopModule,
    .put = addPut, .trace = addTrace, .event = addIocEvent,
    .second = lookEachSecond,
};

static int startModule(void *arg, const ebpfMonModuleCore *core)
{
    int status = startHistory(arg, core);

    module.packet = history->packets && history->notes ? addPacket : NULL;
    module.message = module.packet ? addMessage : NULL;
    if (status == 0 && history->conf.file[0])
        status = ebpfMonHistoryFinderStart(finder, history->conf.file);
    return status;
}

static int stopModule(void *arg, double seconds)
{
    return ebpfMonHistoryFinderStop(finder, seconds / 2) | ebpfMonSharedWorkerStop(&history->worker, seconds / 2);
}

static void keepHistory(const iocshArgBuf *args)
{
    char why[200];

    if (configureFile(history, args[0].sval, args[1].ival, args[2].ival, args[3].sval, why, sizeof(why)) == 0)
        return;
    ebpfMonShellFail("ebpfMonHistoryKeep: %s\n", why);
}

static void keepRing(const iocshArgBuf *args)
{
    char why[200];

    if (configureRing(history, args[0].sval, args[1].ival, args[2].sval, why, sizeof(why)) == 0)
        return;
    ebpfMonShellFail("ebpfMonHistoryRing: %s\n", why);
}

static void freezeRing(const iocshArgBuf *args)
{
    if (freezeHistory(history, args[0].sval) == 0)
        return;
    ebpfMonShellFail("ebpfMonHistoryFreeze: nothing is kept. Give ebpfMonHistoryKeep and "
                     "ebpfMonHistoryRing before iocInit\n");
}

static void replayFile(const iocshArgBuf *args)
{
    char why[200];

    if (ebpfMonHistoryReplay(args[0].sval, args[1].sval, why, sizeof(why)) == 0)
        return;
    ebpfMonShellFail("ebpfMonReplay: %s\n", why);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonHistoryKeep", keepHistory,
     {{"file", iocshArgString}, {"megabytes", iocshArgInt}, {"days", iocshArgInt}, {"leaveOut", iocshArgString}},
     "Keeps puts, events of IOCs, slow chains and gaps in this file (SQLite), before iocInit.\n"
     "  megabytes, days  how much and how long (1024, 30); the oldest rows go first\n"
     "  leaveOut         \"values\", \"names\" (users and hosts), or both: what is not kept\n"
     "The program ebpfMonHistory asks it.\n"
     "Example: ebpfMonHistoryKeep \"/var/lib/ebpfmon/history.sqlite\" 1024 30\n"},
    {"ebpfMonHistoryRing", keepRing,
     {{"folder", iocshArgString}, {"megabytes", iocshArgInt}, {"packets", iocshArgString}},
     "Keeps the newest rows of the history in memory, each put by itself, and packets, before iocInit. They are\n"
     "written to files of this folder when the rules do not expect a put, when an IOC ends or stands still, when a\n"
     "thread hangs, at a deadlock, when a scan takes more than twice its period, and by ebpfMonHistoryFreeze or\n"
     "SIGUSR1.\n"
     "  megabytes        of memory (64); a quarter is for packets\n"
     "  packets          \"\": their headers, \"payload\": all of them, \"none\"\n"
     "Example: ebpfMonHistoryRing \"/var/lib/ebpfmon\" 64\n"},
    {"ebpfMonHistoryFreeze", freezeRing, {{"note", iocshArgString}},
     "Writes the newest rows (ebpfMonHistoryRing) to a file now. The note says why.\n"
     "Example: ebpfMonHistoryFreeze \"beam lost\"\n"},
    {"ebpfMonReplay", replayFile, {{"file", iocshArgString}, {"prefix", iocshArgString}},
     "Shows a file of the history by the PVs of the monitor, which watches nothing then; before iocInit. REPLAY_TIME,\n"
     "REPLAY_SPEED and REPLAY_STEP (ebpfMonReplay.db with this prefix) set the time.\n"
     "Example: ebpfMonReplay \"frozen-20261128T031005Z.tar\" \"REPLAY:\"\n"},
};

/* --- questions of clients --- */

static long askHistory(lsoRecord *prec)
{
    static const char *const parts[ebpfMonAskParts] = { "FROM", "TO", "PV", "USER" };

    if (!ebpfMonGuardAccepts((dbCommon *)prec))
        return EBPFMON_GUARD_REFUSED;
    if (strcmp(prec->out.value.instio.string, "FREEZE") == 0 && freezeHistory(history, prec->val))
        recGblSetSevrMsg(prec, WRITE_ALARM, INVALID_ALARM, "no ebpfMonHistoryRing");
    for (int i = 0; i < ebpfMonAskParts; i++)
        if (strcmp(prec->out.value.instio.string, parts[i]) == 0)
            ebpfMonHistoryFinderAsk(finder, (ebpfMonAskPart)i, prec->val);
    return 0;
}

static lsodset devEbpfMonHistory = {{5, NULL, NULL, ebpfMonGuardAdd, NULL}, askHistory};
epicsExportAddress(dset, devEbpfMonHistory);

static void ebpfMonHistoryRegistrar(void)
{
    history = newHistory(&module);
    finder = ebpfMonHistoryFinderNew(&module);
    ebpfMonShellAddModule(&module, history, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonHistoryRegistrar);
