/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <epicsMutex.h>

#include "common/clock.h"
#include "common/text.h"
#include "history/historyFreezer.h"
#include "history/historyReport.h"
#include "model/published.h"

#define AFTER_NS  5000000000ull  /* from the trigger to the file */
#define PAUSE_NS  60000000000ull /* from one trigger to the next */
#define FILES     20
#define SIGN_ROWS 2000 /* written between two signs of the thread */
#define PREFIX    "frozen-"

struct ebpfMonHistoryFreezer {
    char folder[256];
    unsigned megabytes;
    uint8_t *ring;         /* rows, each after its length (uint32_t) */
    size_t size, head, used; /* head: of the oldest byte in use */
    uint64_t dueAt;        /* monotonic ns; 0: no file is due */
    uint64_t triggeredAt;  /* the last trigger; 0: never */
    char note[200];        /* why it is due */
    epicsMutexId lock;     /* guards the next member */
    char requested[200];   /* empty: nobody has */
};

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
    f->size = (size_t)f->megabytes << 20;
    f->ring = malloc(f->size);
    f->lock = epicsMutexMustCreate();
    if (f->ring)
        return f;
    epicsMutexDestroy(f->lock);
    free(f);
    snprintf(why, size, "no memory for %u MB", megabytes ? (unsigned)megabytes : EBPFMON_HISTORY_RING_MEGABYTES);
    return NULL;
}

/* --- the ring --- */

static void copyIn(ebpfMonHistoryFreezer *f, const void *from, size_t length)
{
    size_t at = (f->head + f->used) % f->size, first = length < f->size - at ? length : f->size - at;

    memcpy(f->ring + at, from, first);
    memcpy(f->ring, (const char *)from + first, length - first);
    f->used += length;
}

static void copyOut(const ebpfMonHistoryFreezer *f, size_t at, void *to, size_t length)
{
    size_t first;

    at %= f->size;
    first = length < f->size - at ? length : f->size - at;
    memcpy(to, f->ring + at, first);
    memcpy((char *)to + first, f->ring, length - first);
}

static uint32_t getLength(const ebpfMonHistoryFreezer *f, size_t at)
{
    uint32_t length;

    copyOut(f, at, &length, sizeof(length));
    return length;
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
    return strstr(event, " ended") || strstr(event, " stands still ") || strstr(event, " hangs since ");
}

void ebpfMonHistoryFreezerAdd(ebpfMonHistoryFreezer *f, const uint8_t *queued, size_t length,
                              const ebpfMonHistoryRow *row)
{
    uint32_t head = (uint32_t)length;
    char note[200];

    while (f->used + sizeof(head) + length > f->size) {
        size_t oldest = sizeof(head) + getLength(f, f->head);

        f->head = (f->head + oldest) % f->size;
        f->used -= oldest;
    }
    copyIn(f, &head, sizeof(head));
    copyIn(f, queued, length);
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

static int isFrozen(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) == 0 && length > 7 &&
           strcmp(entry->d_name + length - 7, ".sqlite") == 0;
}

static void removeFile(const ebpfMonHistoryFreezer *f, const char *name)
{
    char path[600];

    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    unlink(path);
    snprintf(path, sizeof(path), "%s/%.*s.md", f->folder, (int)(strlen(name) - 7), name);
    unlink(path);
}

/* Names are times, so their order is that of the files. */
static void removeOldFiles(const ebpfMonHistoryFreezer *f)
{
    struct dirent **list;
    int count = scandir(f->folder, &list, isFrozen, alphasort);

    for (int i = 0; i < count; i++) {
        if (i < count - FILES)
            removeFile(f, list[i]->d_name);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
}

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

static int addRows(const ebpfMonHistoryFreezer *f, ebpfMonHistoryStore *store, ebpfMonWorker *worker, char *why,
                   size_t size)
{
    uint8_t queued[EBPFMON_HISTORY_PACKED];
    ebpfMonHistoryRow row;
    unsigned rows = 0;

    for (size_t at = 0; at < f->used;) {
        uint32_t length = getLength(f, f->head + at);

        copyOut(f, f->head + at + sizeof(length), queued, length);
        at += sizeof(length) + length;
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
             addIocs(store, now, why, size) || ebpfMonHistoryStoreAdd(store, &note, why, size) ||
             ebpfMonHistoryStoreEnd(store, now, 1, why, size) ? -1 : 0;
    ebpfMonHistoryStoreClose(store);
    return status;
}

/* About the rows of the file. It gets its name when it is whole. If it cannot be written, it can be made later. */
static void writePage(const char *path, const char *page, uint64_t now)
{
    const ebpfMonHistoryQuestion question = { .file = path, .from = (int64_t)now - 600000000000ll,
                                              .to = (int64_t)now };
    char part[420], why[200];
    FILE *out;

    snprintf(part, sizeof(part), "%s.part", page);
    out = fopen(part, "wx");
    if (!out)
        return;
    ebpfMonHistoryWriteReport(&question, out, why, sizeof(why));
    if (fclose(out) == 0)
        rename(part, page);
}

static void freezeNow(ebpfMonHistoryFreezer *f, ebpfMonWorker *worker, char *said, size_t size)
{
    uint64_t now = ebpfMonClockReal();
    time_t seconds = (time_t)(now / EBPFMON_SECOND_NS);
    char path[400], page[400], name[40], why[256];
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(name, sizeof(name), "%Y%m%dT%H%M%SZ", &tm);
    snprintf(path, sizeof(path), "%s/" PREFIX "%s.sqlite", f->folder, name);
    snprintf(page, sizeof(page), "%s/" PREFIX "%s.md", f->folder, name);
    if (writeFile(f, path, now, worker, why, sizeof(why))) {
        snprintf(said, size, "the last minutes are not frozen: %s", why);
        return;
    }
    writePage(path, page, now);
    removeOldFiles(f);
    snprintf(said, size, "the last minutes are frozen in %s: %s", path, f->note);
}

int ebpfMonHistoryFreezerWork(ebpfMonHistoryFreezer *f, ebpfMonWorker *worker, char *said, size_t size)
{
    uint64_t now = ebpfMonClockMonotonic();

    epicsMutexMustLock(f->lock);
    if (f->requested[0] && !f->dueAt) {
        f->dueAt = now;
        snprintf(f->note, sizeof(f->note), "%s", f->requested);
        f->requested[0] = 0;
    }
    epicsMutexUnlock(f->lock);
    if (!f->dueAt || now < f->dueAt)
        return 0;
    f->dueAt = 0;
    freezeNow(f, worker, said, size);
    return 1;
}
