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
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsExport.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/text.h"
#include "common/worker.h"
#include "ebpfMonModule.h"
#include "model/filter.h"
#include "model/ops.h"
#include "model/published.h"
#include "record/filterInputs.h"
#include "record/filterSub.h"
#include "record/shellCommand.h"
#include "watch/target.h"

#define FILTER_SIZE 512 /* bytes of a filter as text */

typedef struct {
    char     pattern[EBPFMON_PATTERN_SIZE];
    int      level;
} keptLevel;

typedef struct {
    char     start[FILTER_SIZE];  /* the filter of the start-up script */
    char     filter[FILTER_SIZE]; /* the filter in force */
    unsigned levels;
    keptLevel level[EBPFMON_LEVEL_RULES_MAX]; /* the oldest first */
    unsigned puts;      /* unexpected puts that are open */
    ebpfMonPut *put;    /* the oldest first. The owner of this struct frees it */
    unsigned gone;      /* IOCs that are gone, and are not acknowledged */
    ebpfMonGoneIoc goneIoc[EBPFMON_HEALTH_GONE]; /* without a note */
    unsigned iocs;      /* that were watched, sorted */
    char     ioc[EBPFMON_HEALTH_IOCS][EBPFMON_HEALTH_NAME];
} keptSettings;

#define HEAD "ebpfMonSettings 1"
#define PUTS_MAX 64 /* as many as are kept, EBPFMON_UNEXPECTED_MAX */

/* --- the file: a line for each thing, with a name, a blank, and the value (epicsStrPrintEscaped) ---
 *
 * A filter. */

/* A filter as text, and back. 0; or -1: "why" says what is wrong. */
static void writeFilter(const ebpfMonFilter *f, char text[FILTER_SIZE])
{
    /* in the order of the inputs of the filter record */
    snprintf(text, FILTER_SIZE, "%s\n%s\n%s\n%s\n%s\n%s\n%.17g\n%u\n%.17g\n%.17g", f->ioc, f->record,
             f->field, f->host, f->user, ebpfMonLevelName(f->level), f->slowUs, f->sample, f->budget, f->timed);
}

static int readFilter(const char *text, ebpfMonFilter *filter, char *why, size_t size)
{
    char line[FILTER_SIZE];

    *filter = ebpfMonFilterDefault;
    for (unsigned in = 0; in < EBPFMON_FILTER_INPUTS; in++) {
        size_t length = strcspn(text, "\n");

        if (length >= sizeof(line)) {
            snprintf(why, size, "a line is too long");
            return -1;
        }
        memcpy(line, text, length);
        line[length] = 0;
        if (ebpfMonFilterParse(filter, in, line, why, size))
            return -1;
        text += length + (text[length] == '\n');
    }
    return ebpfMonFilterCheck(filter, why, size);
}

/* --- a put --- */

typedef enum { isChars, isInt, isLong, isDouble, isHash } memberType;

typedef struct {
    const char *name;
    size_t      offset, size;
    memberType  type;
} memberOfPut;

#define MEMBER(member, type) { #member, offsetof(ebpfMonPut, member), sizeof(((ebpfMonPut *)0)->member), type }

/* "time" and "at" are written apart; "serial" is new each time; links across IOCs (linkChain) end with the monitor. */
static const memberOfPut members[] = {
    MEMBER(ioc, isChars), MEMBER(pv, isChars), MEMBER(channel, isChars), MEMBER(group, isChars),
    MEMBER(val, isChars), MEMBER(old, isChars), MEMBER(after, isChars), MEMBER(user, isChars),
    MEMBER(authority, isChars), MEMBER(host, isChars), MEMBER(peer, isChars), MEMBER(server, isChars),
    MEMBER(published, isChars),
    MEMBER(gateway, isChars), MEMBER(gatewayServer, isChars), MEMBER(gatewayClients, isInt),
    MEMBER(realUser, isChars), MEMBER(command, isChars), MEMBER(container, isChars), MEMBER(thread, isChars),
    MEMBER(link, isChars), MEMBER(linkIoc, isChars), MEMBER(root, isChars), MEMBER(cause, isChars),
    MEMBER(who, isChars), MEMBER(origin, isChars), MEMBER(message, isChars), MEMBER(rule, isChars),
    MEMBER(hasOld, isInt), MEMBER(isNumber, isInt), MEMBER(oldIsNumber, isInt), MEMBER(isText, isInt),
    MEMBER(oldIsText, isInt), MEMBER(isConverted, isInt), MEMBER(isWrapped, isInt), MEMBER(isUnsure, isInt),
    MEMBER(isPartly, isInt), MEMBER(byProgram, isInt), MEMBER(unexpected, isInt), MEMBER(seen, isInt),
    MEMBER(peerPid, isInt), MEMBER(peerUid, isInt), MEMBER(through, isInt), MEMBER(result, isInt),
    MEMBER(count, isLong), MEMBER(oldCount, isLong), MEMBER(status, isLong), MEMBER(number, isDouble),
    MEMBER(oldNumber, isDouble), MEMBER(converted, isDouble), MEMBER(wrapped, isDouble), MEMBER(hash, isHash),
    MEMBER(took, isHash),
};

static void writeText(FILE *file, const char *name, const char *text)
{
    fprintf(file, "%s ", name);
    epicsStrPrintEscaped(file, text, strlen(text));
    fputc('\n', file);
}

static void writePut(FILE *file, const ebpfMonPut *put)
{
    fprintf(file, "put %u.%09u\n", put->time.secPastEpoch, put->time.nsec);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const memberOfPut *m = &members[i];
        const void *at = (const char *)put + m->offset;
        char name[32];

        snprintf(name, sizeof(name), "put.%s", m->name);
        if (m->type == isChars && *(const char *)at)
            writeText(file, name, at);
        else if (m->type == isInt && *(const int *)at)
            fprintf(file, "%s %d\n", name, *(const int *)at);
        else if (m->type == isLong)
            fprintf(file, "%s %ld\n", name, *(const long *)at);
        else if (m->type == isDouble)
            fprintf(file, "%s %.17g\n", name, *(const double *)at);
        else if (m->type == isHash)
            fprintf(file, "%s %llu\n", name, *(const unsigned long long *)at);
    }
}

static void readMember(ebpfMonPut *put, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const memberOfPut *m = &members[i];
        void *at = (char *)put + m->offset;

        if (strcmp(m->name, name) != 0)
            continue;
        if (m->type == isChars)
            ebpfMonTextCopy(at, m->size, value);
        else if (m->type == isInt)
            *(int *)at = (int)strtol(value, NULL, 10);
        else if (m->type == isLong)
            *(long *)at = strtol(value, NULL, 10);
        else if (m->type == isDouble)
            *(double *)at = strtod(value, NULL);
        else
            *(uint64_t *)at = strtoull(value, NULL, 10);
        return;
    }
}

/* --- an IOC that is gone --- */

/* The name comes last: it may have blanks. */
static void writeGone(FILE *file, const ebpfMonGoneIoc *gone)
{
    fprintf(file, "gone %u.%09u %d %d %u ", gone->time.secPastEpoch, gone->time.nsec, gone->pid, gone->hasExit,
            gone->exitCode);
    epicsStrPrintEscaped(file, gone->name, strlen(gone->name));
    fputc('\n', file);
}

static void readGone(keptSettings *kept, const char *value)
{
    ebpfMonGoneIoc *gone = &kept->goneIoc[kept->gone];
    int at = 0;

    if (kept->gone == EBPFMON_HEALTH_GONE ||
        sscanf(value, "%u.%9u %d %d %u %n", &gone->time.secPastEpoch, &gone->time.nsec, &gone->pid, &gone->hasExit,
               &gone->exitCode, &at) < 5 || !at || !value[at])
        return;
    ebpfMonTextCopy(gone->name, sizeof(gone->name), value + at);
    kept->gone++;
}

/* --- all --- */

/* Writes all lines to "file". */
static void writeKept(const keptSettings *kept, FILE *file)
{
    fprintf(file, HEAD "\n");
    writeText(file, "start", kept->start);
    writeText(file, "filter", kept->filter);
    for (unsigned i = 0; i < kept->levels; i++) {
        fprintf(file, "level %s ", ebpfMonLevelName((ebpfMonLevel)kept->level[i].level));
        epicsStrPrintEscaped(file, kept->level[i].pattern, strlen(kept->level[i].pattern));
        fputc('\n', file);
    }
    for (unsigned i = 0; i < kept->puts; i++)
        writePut(file, &kept->put[i]);
    for (unsigned i = 0; i < kept->gone; i++)
        writeGone(file, &kept->goneIoc[i]);
    for (unsigned i = 0; i < kept->iocs; i++)
        writeText(file, "ioc", kept->ioc[i]);
}

static void readLevel(keptSettings *kept, char *value)
{
    char *pattern = strchr(value, ' ');
    int level;

    if (!pattern || kept->levels == EBPFMON_LEVEL_RULES_MAX)
        return;
    *pattern++ = 0;
    level = ebpfMonLevelParse(value);
    if (level < 0 || strlen(pattern) >= EBPFMON_PATTERN_SIZE)
        return;
    kept->level[kept->levels].level = level;
    strcpy(kept->level[kept->levels++].pattern, pattern);
}

static void readLine(keptSettings *kept, const char *name, char *value)
{
    if (strcmp(name, "start") == 0) {
        snprintf(kept->start, sizeof(kept->start), "%s", value);
    } else if (strcmp(name, "filter") == 0) {
        snprintf(kept->filter, sizeof(kept->filter), "%s", value);
    } else if (strcmp(name, "level") == 0) {
        readLevel(kept, value);
    } else if (strcmp(name, "gone") == 0) {
        readGone(kept, value);
    } else if (strcmp(name, "ioc") == 0 && kept->iocs < EBPFMON_HEALTH_IOCS) {
        ebpfMonTextCopy(kept->ioc[kept->iocs++], sizeof(kept->ioc[0]), value);
    } else if (strcmp(name, "put") == 0 && kept->puts < PUTS_MAX) {
        ebpfMonPut *put = &kept->put[kept->puts++];

        memset(put, 0, sizeof(*put));
        sscanf(value, "%u.%9u", &put->time.secPastEpoch, &put->time.nsec);
    } else if (strncmp(name, "put.", 4) == 0 && kept->puts) {
        readMember(&kept->put[kept->puts - 1], name + 4, value);
    }
}

/* The two are places in tables. */
static int isSound(const ebpfMonPut *put)
{
    return (unsigned)put->through < ebpfMonByCount && (unsigned)put->result <= ebpfMonPutUnwritten && put->unexpected;
}

/* Reads the lines of a whole file, which this function changes. A line with a name that is not known is left out: a
 * later version wrote it. 0, or -1: it is no such file, or there is no memory. */
static int readKept(char *text, keptSettings *kept)
{
    char *line = text, *next;

    memset(kept, 0, sizeof(*kept));
    if (strncmp(text, HEAD "\n", strlen(HEAD) + 1) != 0)
        return -1;
    kept->put = calloc(PUTS_MAX, sizeof(*kept->put));
    if (!kept->put)
        return -1;
    for (line = strchr(text, '\n') + 1; *line; line = next) {
        char *end = line + strcspn(line, "\n"), *value = line + strcspn(line, " \n");

        next = end + (*end == '\n');
        if (value == end) /* a name alone */
            continue;
        *end = *value++ = 0;
        epicsStrnRawFromEscaped(value, strlen(value) + 1, value, strlen(value));
        readLine(kept, line, value);
    }
    for (unsigned i = kept->puts; i-- > 0;)
        if (!isSound(&kept->put[i]))
            memmove(&kept->put[i], &kept->put[i + 1], (--kept->puts - i) * sizeof(*kept->put));
    return 0;
}

#define FILE_MOST (1u << 20) /* bytes; 64 puts have 200 KB at most */
#define TURN_SECONDS 1.0

typedef struct {
    char   file[256];        /* empty: nothing is kept. Set before the start */
    char   start[FILTER_SIZE]; /* the filter of the start-up script; set at the start */
    char  *written;          /* what the file has. This one and the next five: the thread only */
    int    isRestored;       /* filter and levels */
    int    isFilterRestored; /* … and is in force */
    int    isGoneRestored;   /* the IOCs that are gone */
    int    isFailing;        /* the file could not be written the last time */
    keptSettings found; /* of the file, at the start */
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
        if (readKept(whole, &s->found))
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
    char why[256], remark[sizeof(s->file) + 40];

    if (!s->found.filter[0] || strcmp(s->found.filter, s->start) == 0)
        return;
    if (strcmp(s->found.start, s->start) != 0) {
        errlogSevPrintf(errlogInfo, "ebpfMon: the filter of the start-up script is new: the kept one was not "
                        "restored\n");
        return;
    }
    if (readFilter(s->found.filter, &filter, why, sizeof(why)) ||
        ebpfMonFilterCommand(&filter, EBPFMON_FILTER_ALL, why, sizeof(why)))
        errlogSevPrintf(errlogMajor, "ebpfMonKeepSettings: the kept filter was not restored: %s\n", why);
    else {
        errlogSevPrintf(errlogInfo, "ebpfMon: filter restored from %s: %s. ebpfMonForgetSettings goes back\n", s->file,
                        why);
        snprintf(remark, sizeof(remark), "filter restored from %s", s->file);
        ebpfMonPublishedSetRemark(remark);
        s->isFilterRestored = 1;
    }
}

static void restoreLevels(settings *s)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;
    char why[160];

    for (unsigned i = 0; i < s->found.levels; i++) {
        const keptLevel *l = &s->found.level[i];

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
static void takeIocs(const settings *s, keptSettings *now)
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
    keptSettings now = { .levels = 0 };
    ebpfMonFilter filter;
    char *text = NULL;
    size_t size;
    FILE *memory;

    strcpy(now.start, s->start);
    monitor->getFilter(monitor->arg, &filter);
    writeFilter(&filter, now.filter);
    if (s->isFilterRestored && strcmp(now.filter, s->found.filter) != 0) { /* somebody has set another one */
        ebpfMonPublishedSetRemark("");
        s->isFilterRestored = 0;
    }
    while (now.levels < EBPFMON_LEVEL_RULES_MAX) {
        keptLevel *l = &now.level[now.levels];

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
    writeKept(&now, memory);
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
        const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;

        if (!s->isRestored && monitor->isFilterApplied(monitor->arg, 0)) { /* it runs; IOCs may still be looked for */
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
    writeFilter(&filter, s->start);
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
    if (readFilter(here.start, &filter, text, sizeof(text)) ||
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
