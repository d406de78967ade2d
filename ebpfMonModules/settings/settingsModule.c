/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operator has set, the unexpected puts that nobody has acknowledged, and the IOCs that are gone, survive a
 * restart of the monitor: a file has them. A thread of its own looks once a second whether they have changed, and then
 * replaces the file.
 *
 * The filter of the start-up script counts if it is another one than at the last start: somebody has changed the script
 * since.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsExport.h>
#include <epicsStdio.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/text.h"
#include "common/worker.h"
#include "ebpfMonModule.h"
#include "model/ops.h"
#include "model/published.h"
#include "record/filterSub.h"
#include "record/shellCommand.h"
#include "settings/settingsFile.h"
#include "watch/target.h"

#define FILE_MOST (1u << 20) /* bytes; 64 puts have 200 KB at most */
#define TURN_SECONDS 1.0

typedef struct {
    char   file[256];        /* empty: nothing is kept. Set before the start */
    char   start[EBPFMON_SETTINGS_FILTER]; /* the filter of the start-up script; set at the start */
    char  *written;          /* what the file has. This one and the next four: the thread only */
    int    isRestored;       /* filter and levels */
    int    isGoneRestored;   /* the IOCs that are gone */
    int    isFailing;        /* the file could not be written the last time */
    ebpfMonSettingsKept found; /* of the file, at the start */
    uint64_t hadCount, hadAcknowledged; /* of the unexpected puts in "puts" */
    ebpfMonPut *puts;        /* open ones, the oldest first */
    unsigned putCount;
    ebpfMonTargets *targets; /* set at the start */
    ebpfMonWorker *worker;   /* the thread that starts and stops modules */
} settings;

/* One per process, because Base calls registrars and commands without a context. */
static settings here;

/* --- restoring --- */

static void readFile(settings *s)
{
    char why[200];
    size_t length;
    int exists = access(s->file, F_OK) == 0;
    char *text = exists ? ebpfMonWholeFileRead(s->file, FILE_MOST, &length, why, sizeof(why)) : NULL;
    char *whole = text ? realloc(text, length + 1) : NULL;

    if (whole) {
        whole[length] = 0;
        if (ebpfMonSettingsRead(whole, &s->found))
            errlogSevPrintf(errlogMajor, "ebpfMonKeepSettings: %s is no file of kept settings: nothing was restored. "
                            "Give another name, or remove it\n", s->file);
    } else if (exists) {
        errlogSevPrintf(errlogMajor, "ebpfMonKeepSettings: nothing was restored from %s: %s\n", s->file,
                        text ? "out of memory" : why);
    }
    free(whole ? whole : text);
}

/* The time since the put was made is what the wall clock says: the monotonic one may have begun anew. */
static void restorePuts(settings *s)
{
    uint64_t now = ebpfMonClockMonotonic();
    epicsTimeStamp wall;

    epicsTimeGetCurrent(&wall);
    for (unsigned i = 0; i < s->found.puts; i++) {
        ebpfMonPut *put = &s->found.put[i];
        double ago = epicsTimeDiffInSeconds(&wall, &put->time);

        put->at = ago > 0 && ago * 1e9 < (double)now ? now - (uint64_t)(ago * 1e9) : 1 + i;
        ebpfMonPublishedRestoreUnexpected(put);
    }
    if (s->found.puts)
        errlogSevPrintf(errlogInfo, "ebpfMon: %u unexpected puts are open since before this start\n", s->found.puts);
}

static void restoreFilter(settings *s)
{
    ebpfMonFilter filter;
    char why[256];

    if (!s->found.filter[0] || strcmp(s->found.filter, s->start) == 0)
        return;
    if (strcmp(s->found.start, s->start) != 0) {
        errlogSevPrintf(errlogInfo, "ebpfMon: the filter of the start-up script is new: the kept one was not "
                        "restored\n");
        return;
    }
    if (ebpfMonSettingsReadFilter(s->found.filter, &filter, why, sizeof(why)) ||
        ebpfMonFilterCommand(&filter, EBPFMON_FILTER_ALL, why, sizeof(why)))
        errlogSevPrintf(errlogMajor, "ebpfMonKeepSettings: the kept filter was not restored: %s\n", why);
    else
        errlogSevPrintf(errlogInfo, "ebpfMon: filter restored from %s: %s. ebpfMonForgetSettings goes back\n", s->file,
                        why);
}

static void restoreLevels(settings *s)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    char why[160];

    for (unsigned i = 0; i < s->found.levels; i++) {
        const ebpfMonSettingsLevel *l = &s->found.level[i];

        if (monitor->setLevel(monitor->arg, l->pattern, l->level, why, sizeof(why)) == ebpfMonOpDone)
            errlogSevPrintf(errlogInfo, "ebpfMon: level %s of %s restored\n", ebpfMonLevelName((ebpfMonLevel)l->level),
                            l->pattern);
    }
}

static int isThere(ebpfMonTargets *targets, const char *name)
{
    const ebpfMonTarget *t;

    ebpfMonTargetsLock(targets);
    for (t = ebpfMonTargetsGetFirst(targets); t && (t->gone || strcmp(t->name, name) != 0); t = t->next)
        ;
    ebpfMonTargetsUnlock(targets);
    return t != NULL;
}

/* When all IOCs of the host have been found: those that were gone, and those that were watched and are not there. */
static void restoreGone(settings *s)
{
    ebpfMonGoneIoc missing = { .pid = 0 };

    for (unsigned i = 0; i < s->found.gone; i++)
        if (!isThere(s->targets, s->found.goneIoc[i].name))
            ebpfMonPublishedRestoreGone(&s->found.goneIoc[i]);
    epicsTimeGetCurrent(&missing.time);
    for (unsigned i = 0; i < s->found.iocs; i++)
        if (!isThere(s->targets, s->found.ioc[i])) {
            ebpfMonTextCopy(missing.name, sizeof(missing.name), s->found.ioc[i]);
            ebpfMonPublishedRestoreGone(&missing);
        }
}

/* --- keeping --- */

/* Copies the puts that are open, if they have changed. */
static void takePuts(settings *s)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonUnexpectedValues *u = &published->unexpected;
    const ebpfMonPut *put;

    if (u->count != s->hadCount || u->acknowledged != s->hadAcknowledged) {
        s->hadCount = u->count;
        s->hadAcknowledged = u->acknowledged;
        s->putCount = 0;
        while (s->putCount < EBPFMON_UNEXPECTED_MAX && (put = ebpfMonPublishedGetUnexpected(published, s->putCount)))
            s->puts[EBPFMON_UNEXPECTED_MAX - ++s->putCount] = *put;
    }
    ebpfMonPublishedUnlock();
}

static int compareNames(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Until those of the file are shown, the file keeps them. */
static void takeIocs(const settings *s, ebpfMonSettingsKept *now)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonHealth *h = &published->health;

    if (s->isGoneRestored && !published->restored) {
        now->gone = h->goneRows;
        memcpy(now->goneIoc, h->goneIoc, h->goneRows * sizeof(h->goneIoc[0]));
        for (unsigned i = 0; i < h->iocs; i++)
            if (h->ioc[i].isWatched)
                strcpy(now->ioc[now->iocs++], h->ioc[i].name);
    } else {
        now->gone = s->found.gone;
        memcpy(now->goneIoc, s->found.goneIoc, sizeof(now->goneIoc));
        now->iocs = s->found.iocs;
        memcpy(now->ioc, s->found.ioc, sizeof(now->ioc));
    }
    ebpfMonPublishedUnlock();
    qsort(now->ioc, now->iocs, sizeof(now->ioc[0]), compareNames);
}

static char *makeText(settings *s)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonSettingsKept now = { .levels = 0 };
    ebpfMonFilter filter;
    char *text = NULL;
    size_t size;
    FILE *memory;

    strcpy(now.start, s->start);
    monitor->getFilter(monitor->arg, &filter);
    ebpfMonSettingsWriteFilter(&filter, now.filter);
    while (now.levels < EBPFMON_LEVEL_RULES_MAX) {
        ebpfMonSettingsLevel *l = &now.level[now.levels];

        l->level = monitor->getLevel(monitor->arg, now.levels, l->pattern);
        if (l->level < 0)
            break;
        now.levels++;
    }
    takeIocs(s, &now);
    takePuts(s);
    now.puts = s->putCount;
    now.put = &s->puts[EBPFMON_UNEXPECTED_MAX - s->putCount];
    memory = open_memstream(&text, &size);
    if (!memory)
        return NULL;
    ebpfMonSettingsWrite(&now, memory);
    return fclose(memory) ? NULL : text;
}

/* The old file stays until the new one is whole. 0, or -1: errno says why. */
static int replaceFile(const char *path, const char *text)
{
    char made[sizeof(here.file) + 8];
    FILE *file;
    int status;

    snprintf(made, sizeof(made), "%s.new", path);
    file = ebpfMonNewFileMake(made);
    if (!file)
        return -1;
    status = fputs(text, file) == EOF || fflush(file) || fsync(fileno(file)) ? -1 : 0;
    if (fclose(file) || status || rename(made, path)) {
        unlink(made);
        return -1;
    }
    return 0;
}

static void keepNow(settings *s)
{
    char *text = makeText(s);

    if (!text || (s->written && strcmp(text, s->written) == 0)) {
        free(text);
        return;
    }
    if (replaceFile(s->file, text) == 0) {
        if (s->isFailing)
            errlogSevPrintf(errlogInfo, "ebpfMon: settings are kept in %s again\n", s->file);
        s->isFailing = 0;
        free(s->written);
        s->written = text;
        return;
    }
    if (!s->isFailing)
        errlogSevPrintf(errlogMajor, "ebpfMon: settings are not kept, because %s cannot be written: %s. It goes on by "
                        "itself\n", s->file, strerror(errno));
    s->isFailing = 1;
    free(text);
}

static void run(ebpfMonWorker *worker, void *arg)
{
    settings *s = arg;

    ebpfMonWorkerWaitsForOthers(worker);
    while (!ebpfMonWorkerIsStopping(worker)) {
        ebpfMonState state = ebpfMonPublishedLock()->state;

        ebpfMonPublishedUnlock();
        if (!s->isRestored && (state == ebpfMonRunning || state == ebpfMonDegraded)) {
            restoreFilter(s);
            restoreLevels(s);
            s->isRestored = 1;
        }
        if (!s->isGoneRestored && ebpfMonTargetsAreFollowed(s->targets)) {
            restoreGone(s);
            s->isGoneRestored = 1;
        }
        if (s->isRestored)
            keepNow(s);
        ebpfMonWorkerWait(worker, TURN_SECONDS);
    }
    if (s->isRestored)
        keepNow(s);
}

static int startSettings(void *arg, const ebpfMonModuleCore *core)
{
    settings *s = arg;
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    ebpfMonFilter filter;

    s->targets = core->targets;
    if (!s->file[0])
        return 0;
    monitor->getFilter(monitor->arg, &filter);
    ebpfMonSettingsWriteFilter(&filter, s->start);
    if (!s->puts) { /* else this is a second try to start */
        readFile(s);
        restorePuts(s);
        s->puts = calloc(EBPFMON_UNEXPECTED_MAX, sizeof(*s->puts));
    }
    if (s->puts)
        s->worker = ebpfMonWorkerStart("ebpfMonSettings", epicsThreadPriorityLow, run, s);
    return s->worker ? 0 : -1;
}

static int stopSettings(void *arg, double seconds)
{
    settings *s = arg;

    return ebpfMonWorkerStop(&s->worker, seconds);
}

static void reportSettings(void *arg, int level)
{
    const settings *s = arg;

    printf("settings: %s%s\n", s->file[0] ? "kept in " : "not kept: ebpfMonKeepSettings", s->file);
}

static ebpfMonModule module = {
    .name = "settings", .start = startSettings, .stop = stopSettings, .report = reportSettings,
};

/* --- commands --- */

static void keepSettings(const iocshArgBuf *args)
{
    const char *file = ebpfMonShellGetText(args[0].sval, "");

    if (module.isStarted)
        ebpfMonShellFail("ebpfMonKeepSettings: too late: give it before iocInit\n");
    else if (file[0] != '/' || strlen(file) >= sizeof(here.file))
        ebpfMonShellFail("ebpfMonKeepSettings: give a path that begins with / and has less than 256 characters\n");
    else
        strcpy(here.file, file);
}

static void forgetSettings(const iocshArgBuf *args)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    char pattern[EBPFMON_PATTERN_SIZE], text[256] = "";
    ebpfMonFilter filter;

    if (!here.start[0]) {
        ebpfMonShellFail("ebpfMonForgetSettings: no settings are kept: ebpfMonKeepSettings, before iocInit\n");
        return;
    }
    while (monitor->getLevel(monitor->arg, 0, pattern) >= 0 &&
           monitor->setLevel(monitor->arg, pattern, -1, text, sizeof(text)) == ebpfMonOpDone)
        ;
    if (ebpfMonSettingsReadFilter(here.start, &filter, text, sizeof(text)) ||
        ebpfMonFilterCommand(&filter, EBPFMON_FILTER_ALL, text, sizeof(text)))
        ebpfMonShellFail("ebpfMonForgetSettings: %s\n", text);
    else
        printf("%s\n", text);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonKeepSettings", keepSettings, {{"file", iocshArgString}},
     "Keeps the filter, the levels of ebpfMonLevel, the open unexpected puts, and which IOCs are gone, over a restart\n"
     "of the monitor, in this file. Before iocInit. If the filter of the start-up script has changed since, that one\n"
     "counts.\n"
     "Example: ebpfMonKeepSettings /var/lib/ebpfmon/settings\n"},
    {"ebpfMonForgetSettings", forgetSettings, EBPFMON_NO_ARGS,
     "Goes back to the filter of the start-up script, and to no levels of ebpfMonLevel.\n"},
};

static void ebpfMonSettingsRegistrar(void)
{
    ebpfMonShellAddModule(&module, &here, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonSettingsRegistrar);
