/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <epicsMutex.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/text.h"
#include "history/historyFreezer.h"
#include "history/historyMinutes.h"
#include "history/historyReport.h"
#include "history/historyPackets.h"
#include "history/historyTar.h"
#include "model/published.h"
#include "shared/iocInventory.h"
#include "export/shared/jsonGen.h" /* the last one: epicsVersion.h makes a macro of epicsReleaseVersion */

#define AFTER_NS  5000000000ull  /* from the trigger to the file */
#define PAUSE_NS  60000000000ull /* from one trigger to the next */
#define FILES     20
#define DISK      16 /* times the memory, for all files */
#define SIGN_ROWS 2000 /* written between two signs of the thread */
#define PREFIX    "frozen-"
#define PART      ".part" /* a folder: what a kill leaves is removed with the next file */
#define ALL       "all.tar"
#define RECORD_BYTES 65536       /* of a record's inventory */
#define SAID      "the last minutes are"

enum { nameHtml = 1, nameMarkdown, namePackets };

static const char *const names[] = { EBPFMON_HISTORY_IN_TAR, "report.html", "report.md", "packets.pcapng", NULL };

struct ebpfMonHistoryFreezer {
    char folder[256];
    unsigned megabytes;
    ebpfMonHistoryRing rows; /* as they lay in the queue */
    ebpfMonHistoryPackets *packets; /* NULL: none are kept. This and the next: fixed before the thread runs */
    struct ebpfMonTargets *targets; /* NULL: no inventory is kept */
    uint64_t dueAt;        /* monotonic ns; 0: no file is due */
    uint64_t triggeredAt;  /* the last trigger; 0: never */
    char note[200];        /* why it is due */
    epicsMutexId lock;     /* guards the next member */
    char requested[200];   /* empty: nobody has */
};

static volatile sig_atomic_t isSignalled; /* static because a signal handler has no context */

static void onSignal(int number)
{
    isSignalled = 1;
}

/* Unless the application has a handler of its own. */
static void takeSignal(void)
{
    struct sigaction action = { .sa_handler = onSignal, .sa_flags = SA_RESTART }, before;

    if (sigaction(SIGUSR1, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGUSR1, &action, NULL);
}

ebpfMonHistoryFreezer *ebpfMonHistoryFreezerNew(const char *folder, int megabytes, char *why, size_t size)
{
    ebpfMonHistoryFreezer *f;

    if (!folder || folder[0] != '/' || strlen(folder) >= sizeof(f->folder) || megabytes < 0 || megabytes > 4096) {
        snprintf(why, size, "give a folder with its whole path, and up to 4096 MB");
        return NULL;
    }
    f = calloc(1, sizeof(*f));
    if (!f) {
        snprintf(why, size, "no memory");
        return NULL;
    }
    snprintf(f->folder, sizeof(f->folder), "%s", folder);
    f->megabytes = megabytes ? (unsigned)megabytes : EBPFMON_HISTORY_RING_MEGABYTES;
    if (ebpfMonHistoryRingInit(&f->rows, ((size_t)f->megabytes << 20) / 4 * 3)) {
        snprintf(why, size, "no memory for %u MB", f->megabytes);
        free(f);
        return NULL;
    }
    f->lock = epicsMutexMustCreate();
    takeSignal();
    return f;
}

ebpfMonHistoryPackets *ebpfMonHistoryFreezerKeepPackets(ebpfMonHistoryFreezer *f, size_t payload)
{
    if (!f->packets)
        f->packets = ebpfMonHistoryPacketsNew(((size_t)f->megabytes << 20) / 4, payload);
    return f->packets;
}

void ebpfMonHistoryFreezerKeepInventory(ebpfMonHistoryFreezer *f, struct ebpfMonTargets *targets)
{
    f->targets = targets;
}

static void trigger(ebpfMonHistoryFreezer *f, const char *note)
{
    uint64_t now = ebpfMonClockMonotonic();

    if (f->dueAt || (f->triggeredAt && now - f->triggeredAt < PAUSE_NS))
        return;
    f->triggeredAt = now;
    f->dueAt = now + AFTER_NS;
    snprintf(f->note, sizeof(f->note), "%s", note);
}

static int isTrouble(const char *event)
{
    if (strncmp(event, SAID, sizeof(SAID) - 1) == 0) /* it repeats a note */
        return 0;
    return strstr(event, " ended") || strstr(event, " stands still ") || strstr(event, " hangs since ") ||
           strstr(event, ": deadlock") ||
           strncmp(event, EBPFMON_HISTORY_FAR_LATE, sizeof(EBPFMON_HISTORY_FAR_LATE) - 1) == 0;
}

void ebpfMonHistoryFreezerAdd(ebpfMonHistoryFreezer *f, const uint8_t *queued, size_t length,
                              const ebpfMonHistoryRow *row)
{
    const struct iovec part = { (void *)queued, length };
    char note[200];

    ebpfMonHistoryRingAdd(&f->rows, &part, 1);
    if (strcmp(row->kind, "put") == 0 && row->reason[0]) {
        snprintf(note, sizeof(note), "unexpected put to %s: %s", row->pv, row->reason);
        trigger(f, note);
    } else if (strcmp(row->kind, "event") == 0 && isTrouble(row->value)) {
        trigger(f, row->value);
    }
}

void ebpfMonHistoryFreezerRequest(ebpfMonHistoryFreezer *f, const char *note)
{
    epicsMutexMustLock(f->lock);
    ebpfMonTextCopy(f->requested, sizeof(f->requested), note && note[0] ? note : "somebody requested it");
    epicsMutexUnlock(f->lock);
}

/* --- the file --- */

static int hasEnding(const struct dirent *entry, const char *ending)
{
    const char *name = entry->d_name;

    return strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0 && strcmp(name + strcspn(name, "."), ending) == 0;
}

static int isFrozen(const struct dirent *entry)
{
    return hasEnding(entry, ".tar");
}

static int isPart(const struct dirent *entry)
{
    return hasEnding(entry, PART);
}

static void removeFolder(const char *folder)
{
    static const char *const others[] = { ALL, EBPFMON_HISTORY_IN_TAR "-wal", EBPFMON_HISTORY_IN_TAR "-shm",
                                          EBPFMON_HISTORY_IN_TAR "-journal", NULL };
    char path[600];

    for (int i = 0; names[i]; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    for (int i = 0; others[i]; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, others[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* Names are times, so their order is that of the files. The newest one stays in any case. */
static void removeOldFiles(const ebpfMonHistoryFreezer *f)
{
    struct dirent **list;
    int count = scandir(f->folder, &list, isFrozen, alphasort);
    uint64_t bytes = 0;
    char path[600];

    for (int i = count - 1; i >= 0; i--) {
        struct stat st;

        snprintf(path, sizeof(path), "%s/%s", f->folder, list[i]->d_name);
        bytes += stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
        if (i < count - 1 && (i < count - FILES || bytes > (uint64_t)f->megabytes * DISK << 20))
            unlink(path);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
    count = scandir(f->folder, &list, isPart, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", f->folder, list[i]->d_name);
        removeFolder(path);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
}

/* --- what is in it --- */

/* The IOCs of this moment, as rows of kind "ioc". */
static int addIocs(ebpfMonHistoryStore *store, uint64_t now, char *why, size_t size)
{
    int status = 0;

    for (unsigned i = 0; status == 0; i++) {
        const ebpfMonPublished *p = ebpfMonPublishedLock();
        int isIoc = i < p->iocs.gone + p->iocs.count && i < EBPFMON_IOCS_MAX;
        ebpfMonIocRow ioc = isIoc ? p->iocs.ioc[i] : (ebpfMonIocRow){ .pid = 0 };
        char value[500];

        ebpfMonPublishedUnlock();
        if (!isIoc)
            break;
        snprintf(value, sizeof(value), "IOC %s: process %d, EPICS %s, %u records, level %s%s%s", ioc.name,
                 (int)ioc.pid, ioc.version, ioc.records, ebpfMonLevelName(ioc.level), ioc.note[0] ? ", " : "",
                 ioc.note);
        status = ebpfMonHistoryStoreAdd(store, &(ebpfMonHistoryRow){ .kind = "ioc", .time = now, .first = now, .n = 1,
                                        .ioc = ioc.name, .value = value }, why, size);
    }
    return status;
}

/* The inventory of one IOC, as rows of kind "variables" and "record". */
typedef struct {
    ebpfMonHistoryStore *store;
    const ebpfMonInventoryIoc *ioc;
    uint64_t time;
    ebpfMonJson json;
    char    *text;         /* RECORD_BYTES */
    size_t   left;         /* bytes that may still be written, of all IOCs */
    char    *why;          /* why a row could not be written … */
    size_t   size;
    int      isBroken;     /* … if this is not 0 */
} inventory;

static int addInventoryRow(inventory *v, const char *kind, const char *record)
{
    size_t length = ebpfMonJsonEnd(&v->json);

    if (!length) /* more than any record of a site has */
        length = (size_t)snprintf(v->text, RECORD_BYTES, "{\"note\":\"too long\"}");
    if (length > v->left) {
        v->left = 0;
        return -1;
    }
    v->left -= length;
    v->text[length] = 0;
    v->isBroken = ebpfMonHistoryStoreAdd(v->store, &(ebpfMonHistoryRow){ .kind = kind, .automatic = 1, .time = v->time,
                                         .first = v->time, .n = 1, .ioc = v->ioc->name, .pv = record,
                                         .value = v->text }, v->why, v->size) != 0;
    return v->isBroken ? -1 : 0;
}

static int addRecord(void *arg, const ebpfMonInventoryRecord *record)
{
    inventory *v = arg;

    if (ebpfMonJsonBegin(&v->json, v->text, RECORD_BYTES - 1))
        return -1;
    ebpfMonInventoryRecordAddJson(record, &v->json);
    return addInventoryRow(v, "record", record->name);
}

static void addVariable(void *arg, const char *name, const char *value)
{
    ebpfMonJsonAddText(&((inventory *)arg)->json, name, value);
}

static void addInventory(inventory *v, ebpfMonWorker *worker)
{
    const ebpfMonInventorySink sink = { addVariable, addRecord, v };
    char reason[120] = "no room", text[400];
    int status = ebpfMonJsonBegin(&v->json, v->text, RECORD_BYTES - 1);

    if (status == 0) {
        ebpfMonInventoryReadVariables(v->ioc, ebpfMonInventoryVariables, "", &sink);
        status = addInventoryRow(v, "variables", NULL);
    }
    if (status == 0)
        status = ebpfMonInventoryReadRecords(v->ioc, ebpfMonInventoryFields, worker, &sink, reason, sizeof(reason));
    if (status == 0 || v->isBroken)
        return;
    snprintf(text, sizeof(text), "the inventory of IOC %s is not whole: %s", v->ioc->name,
             v->left ? reason : "no room");
    v->isBroken = ebpfMonHistoryStoreAdd(v->store, &(ebpfMonHistoryRow){ .kind = "event", .time = v->time,
                                         .first = v->time, .n = 1, .ioc = v->ioc->name, .value = text }, v->why,
                                         v->size) != 0;
}

/* Of an IOC that has ended meanwhile there is none. */
static int addInventories(const ebpfMonHistoryFreezer *f, ebpfMonHistoryStore *store, uint64_t now,
                          ebpfMonWorker *worker, char *why, size_t size)
{
    inventory v = { .store = store, .time = now, .left = (size_t)f->megabytes << 20, .why = why, .size = size };
    unsigned count = 0;
    ebpfMonInventoryIoc *list = f->targets ? ebpfMonIocListTake(f->targets, NULL, &count) : NULL;

    v.text = list ? malloc(RECORD_BYTES) : NULL;
    for (unsigned i = 0; i < count; i++) {
        v.ioc = &list[i];
        if (v.text && !v.isBroken)
            addInventory(&v, worker);
        ebpfMonCatalogueRelease(list[i].cat);
    }
    ebpfMonJsonFree(&v.json);
    free(v.text);
    free(list);
    return v.isBroken ? -1 : 0;
}

static int addRows(const ebpfMonHistoryFreezer *f, ebpfMonHistoryStore *store, ebpfMonWorker *worker, char *why,
                   size_t size)
{
    uint8_t queued[EBPFMON_HISTORY_PACKED];
    ebpfMonHistoryRow row;
    unsigned rows = 0;
    uint64_t at = 0;

    while (ebpfMonHistoryRingRead(&f->rows, &at, f->rows.end, queued, sizeof(queued))) {
        ebpfMonHistoryRowUnpack(queued, &row);
        if (ebpfMonHistoryStoreAdd(store, &row, why, size))
            return -1;
        if (++rows % SIGN_ROWS == 0)
            ebpfMonWorkerGiveSign(worker);
    }
    return 0;
}

static int writeFile(const ebpfMonHistoryFreezer *f, const char *path, uint64_t now, ebpfMonWorker *worker, char *why,
                     size_t size)
{
    /* no row is to be removed: the file may be larger than the ring */
    ebpfMonHistoryStore *store = ebpfMonHistoryStoreOpen(path, 16 * f->megabytes, 0, why, size);
    ebpfMonHistoryRow note = { .kind = "event", .time = now, .first = now, .n = 1, .value = f->note };
    int status;

    if (!store)
        return -1;
    status = ebpfMonHistoryStoreBegin(store, why, size) || addRows(f, store, worker, why, size) ||
             addIocs(store, now, why, size) || addInventories(f, store, now, worker, why, size) ||
             ebpfMonHistoryStoreAdd(store, &note, why, size) ||
             ebpfMonHistoryStoreEnd(store, now, 1, why, size) || ebpfMonHistoryStoreFinish(store, why, size) ? -1 : 0;
    ebpfMonHistoryStoreClose(store);
    return status;
}

/* The page about the rows of a file. If it cannot be written, it can be made later. */
static void writePage(const char *folder, const char *name, uint64_t now, ebpfMonHistoryForm form)
{
    char file[500], path[500], why[200];
    int failed;
    const ebpfMonHistoryQuestion q = { .file = file, .from = (int64_t)now - 600000000000ll, .to = (int64_t)now,
                                       .form = form };
    FILE *out;

    snprintf(file, sizeof(file), "%s/%s", folder, EBPFMON_HISTORY_IN_TAR);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = ebpfMonNewFileMake(path);
    if (!out)
        return;
    failed = ebpfMonHistoryWriteReport(&q, out, why, sizeof(why));
    failed |= fclose(out);
    if (failed)
        unlink(path);
}

/* The history, the pages, the packets. The packets last: "why" says what is missing. */
static int writeParts(ebpfMonHistoryFreezer *f, const char *folder, uint64_t now, ebpfMonWorker *worker, char *why,
                      size_t size)
{
    ebpfMonPacketChains *chains;
    char path[500];
    int status;

    snprintf(path, sizeof(path), "%s/%s", folder, EBPFMON_HISTORY_IN_TAR);
    if (writeFile(f, path, now, worker, why, size))
        return -1;
    writePage(folder, names[nameHtml], now, ebpfMonHistoryHtml);
    ebpfMonWorkerGiveSign(worker);
    writePage(folder, names[nameMarkdown], now, ebpfMonHistoryText);
    ebpfMonWorkerGiveSign(worker);
    if (!f->packets)
        return 0;
    chains = ebpfMonPacketChainsOpen(path);
    snprintf(path, sizeof(path), "%s/%s", folder, names[namePackets]);
    status = ebpfMonHistoryPacketsWrite(f->packets, path, f->note, chains, worker, why, size);
    ebpfMonPacketChainsClose(chains);
    return status ? 1 : 0;
}

/* The tar gets its name when it is whole. 0; 1: without packets; -1: not at all: "why" says what is wrong. */
static int writeTar(ebpfMonHistoryFreezer *f, const char *base, uint64_t now, ebpfMonWorker *worker, char *why,
                    size_t size)
{
    char folder[420], tar[500], path[420];
    int status;

    snprintf(folder, sizeof(folder), "%s" PART, base);
    snprintf(tar, sizeof(tar), "%s/" ALL, folder);
    snprintf(path, sizeof(path), "%s.tar", base);
    if (mkdir(folder, 0750)) {
        snprintf(why, size, "%s: %s", folder, strerror(errno));
        return -1;
    }
    status = writeParts(f, folder, now, worker, why, size);
    if (status >= 0 && ebpfMonHistoryTarWrite(tar, strrchr(base, '/') + 1, folder, names, worker, why, size))
        status = -1;
    if (status >= 0 && rename(tar, path)) {
        snprintf(why, size, "%s: %s", path, strerror(errno));
        status = -1;
    }
    removeFolder(folder);
    return status;
}

/* 0; or -1: the file of this second is there already. */
static int nameFile(const ebpfMonHistoryFreezer *f, uint64_t now, char *base, size_t size)
{
    time_t seconds = (time_t)(now / EBPFMON_SECOND_NS);
    char name[40], file[420];
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(name, sizeof(name), "%Y%m%dT%H%M%SZ", &tm);
    snprintf(base, size, "%s/" PREFIX "%s", f->folder, name);
    snprintf(file, sizeof(file), "%s.tar", base);
    return access(file, F_OK) == 0 ? -1 : 0;
}

static void freezeNow(ebpfMonHistoryFreezer *f, const char *base, uint64_t now, ebpfMonWorker *worker, char *said,
                      size_t size)
{
    char why[600];
    int status = writeTar(f, base, now, worker, why, sizeof(why));

    if (status < 0) {
        snprintf(said, size, SAID " not frozen: %s", why);
        errlogSevPrintf(errlogMajor, "ebpfMon: history: %s\n", said); /* the history may not be written, either */
    } else {
        snprintf(said, size, SAID " frozen in %s.tar%s%s: %s", base, status ? ", without packets: " : "",
                 status ? why : "", f->note);
    }
    removeOldFiles(f);
}

int ebpfMonHistoryFreezerWork(ebpfMonHistoryFreezer *f, ebpfMonWorker *worker, char *said, size_t size)
{
    uint64_t now = ebpfMonClockMonotonic(), real = ebpfMonClockReal();
    char base[400];

    if (isSignalled) {
        isSignalled = 0;
        ebpfMonHistoryFreezerRequest(f, "SIGUSR1");
    }
    epicsMutexMustLock(f->lock);
    if (f->requested[0] && !f->dueAt) {
        f->dueAt = now;
        snprintf(f->note, sizeof(f->note), "%s", f->requested);
        f->requested[0] = 0;
    }
    epicsMutexUnlock(f->lock);
    if (!f->dueAt || now < f->dueAt || nameFile(f, real, base, sizeof(base)))
        return 0;
    f->dueAt = 0;
    freezeNow(f, base, real, worker, said, size);
    return 1;
}
