/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A record counts as used if the monitor saw a channel of a client, a subscription, a read, or a put to any of its
 * fields. The monitor sees no use while it does not watch the IOC. So the report begins with the times at which the IOC
 * was watched, and in which ways.
 */
#include <stdlib.h>
#include <string.h>

#include <epicsString.h>
#include <epicsTime.h>

#include "common/clock.h"
#include "shared/iocInventory.h"
#include "uses/unusedReport.h"

#define DAY 86400.0
#define GAPS_SHOWN 20
#define OTHERS_SHOWN 20
#define OTHERS_MAX 1000
#define WAYS 4 /* bits of EBPFMON_WATCHED_ALL */
#define IOCS_MAX 256
#define CELL ebpfMonTextReportAddCell

typedef struct {
    int64_t last;           /* s since 1970; 0: no use is known */
    ebpfMonUseKind kind;
    char   *who;            /* NULL: not known */
} lastUse;

/* A name that was used, and is no record. */
typedef struct {
    char    name[61];
    lastUse use;
    unsigned members; /* if it is a group of pvAccess, of so many records, whose info tags name it */
} otherName;

typedef struct {
    ebpfMonTextReport *report;
    ebpfMonCatalogue *cat;
    const char *pattern;
    int64_t     now, from;      /* s since 1970 */
    /* one element for each record */
    lastUse    *last;           /* its newest use */
    uint8_t    *isLinked;       /* another record of this IOC processes it through a link */
    /* how the IOC was watched since "from"; times in s since 1970 */
    int64_t     first;          /* when it was first watched, also before "from"; 0: never */
    int64_t     end;            /* the end of the last time at which it was watched */
    int64_t     blind[WAYS];    /* s at which it was watched, but not in this way (bit of EBPFMON_WATCHED_…) */
    int64_t     gapSeconds;     /* s at which it was not watched */
    unsigned    gaps;
    otherName  *other;          /* OTHERS_MAX elements */
    unsigned    others;         /* so many names; there may be more than elements */
    int         hasUnknown;     /* some of these may be groups whose members are not known */
    int         isUnseen;       /* now a client is connected whose channels are not known */
} unusedIoc;

static void formatTime(int64_t time, char *buf, size_t size)
{
    epicsTimeStamp stamp = ebpfMonClockStamp((uint64_t)time * EBPFMON_SECOND_NS);

    epicsTimeToStrftime(buf, size, "%Y-%m-%d %H:%M:%S", &stamp);
}

/* --- what is known ---------------------------------------------------------------------------------------------- */

static void noteLastUse(lastUse *known, int64_t last, ebpfMonUseKind kind, const char *who)
{
    if (last < known->last)
        return;
    free(known->who);
    *known = (lastUse){ .last = last, .kind = kind, .who = strdup(who) };
}

static void noteOther(unusedIoc *u, const ebpfMonUse *use)
{
    unsigned i = 0;

    if (use->last < u->from)
        return;
    while (i < u->others && i < OTHERS_MAX && strcmp(u->other[i].name, use->record) != 0)
        i++;
    if (i == u->others)
        u->others++;
    if (i == OTHERS_MAX)
        return;
    memcpy(u->other[i].name, use->record, sizeof(u->other[i].name));
    noteLastUse(&u->other[i].use, use->last, use->kind, use->who);
}

static void noteUse(void *arg, const ebpfMonUse *use)
{
    unusedIoc *u = arg;
    long record = ebpfMonCatalogueFind(u->cat, use->record); /* use->record may be an alias */

    if (record < 0)
        noteOther(u, use);
    else
        noteLastUse(&u->last[record], use->last, use->kind, use->who);
}

/* QSRV makes a group of the info tags Q:group of its members. Their JSON has the name of the group as a key. */
static int noteMember(void *arg, const ebpfMonInventoryRecord *record)
{
    unusedIoc *u = arg;
    char key[sizeof(u->other->name) + 2], who[256];

    for (unsigned k = 0; k < record->infos; k++)
        for (unsigned i = 0; i < u->others && i < OTHERS_MAX && strcmp(record->info[k].name, "Q:group") == 0; i++) {
            otherName *o = &u->other[i];

            snprintf(key, sizeof(key), "\"%s\"", o->name);
            if (!strstr(record->info[k].value, key))
                continue;
            o->members++;
            snprintf(who, sizeof(who), "group %s: %s", o->name, o->use.who ? o->use.who : "");
            noteLastUse(&u->last[record->index], o->use.last, o->use.kind, who);
        }
    return 0;
}

/* Finds the members of groups. Other groups come from files that the IOC has read (dbLoadGroup): nobody knows their
 * members. */
static void findMembers(unusedIoc *u, ebpfMonTargets *targets, const char *name)
{
    static const char *const noFields[] = { NULL };
    const ebpfMonInventorySink sink = { .record = noteMember, .arg = u };
    ebpfMonInventoryIoc ioc = { .cat = u->cat };
    char why[120];
    unsigned i;

    if (!u->others)
        return;
    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        if (!t->gone && strcmp(t->name, name) == 0) {
            ioc.pid = t->pid;
            ioc.pdbbase = t->image.pdbbase;
        }
    ebpfMonTargetsUnlock(targets);
    u->hasUnknown = !ioc.pid || u->others > OTHERS_MAX ||
                    ebpfMonInventoryReadRecords(&ioc, noFields, NULL, &sink, why, sizeof(why));
    for (i = 0; i < u->others && i < OTHERS_MAX; i++) {
        u->hasUnknown |= !u->other[i].members;
        if (i < OTHERS_SHOWN && u->other[i].members)
            ebpfMonTextReportAdd(u->report, "  %s was used, a group of pvAccess with %u records\n", u->other[i].name,
                                 u->other[i].members);
        else if (i < OTHERS_SHOWN)
            ebpfMonTextReportAdd(u->report, "  %s was used, which is no record: if it is a group of pvAccess, so were "
                                 "its members, which are not known\n", u->other[i].name);
    }
}

static void noteGap(unusedIoc *u, int64_t from, int64_t to)
{
    char began[24], ended[24];

    u->gapSeconds += to - from;
    if (u->gaps++ >= GAPS_SHOWN)
        return;
    formatTime(from, began, sizeof(began));
    formatTime(to, ended, sizeof(ended));
    ebpfMonTextReportAdd(u->report, "  not watched from %s to %s\n", began, ended);
}

static void noteWatched(void *arg, const ebpfMonWatched *w)
{
    unusedIoc *u = arg;
    int64_t began = w->began > u->from ? w->began : u->from;
    int isGap;

    if (!u->first)
        u->first = w->began;
    if (w->ended < u->from)
        return;
    if (u->end && began > u->end + EBPFMON_WATCH_GAP)
        noteGap(u, u->end, began);
    else if (!u->end && began > u->from && u->first < u->from)
        noteGap(u, u->from, began);
    for (int i = 0; i < WAYS; i++)
        if (!(w->ways >> i & 1))
            u->blind[i] += w->ended - began;
    isGap = w->ways != EBPFMON_WATCHED_ALL && w->ended - began > EBPFMON_WATCH_GAP;
    if (isGap) {
        u->gapSeconds += w->ended - began; /* what is not seen is a gap, too */
        u->gaps++;
    }
    if (w->ended < u->end)
        return;
    u->end = w->ended;
    u->isUnseen = isGap && !(w->ways & EBPFMON_WATCHED_CONNECTIONS) && w->ended > u->now - EBPFMON_WATCH_GAP;
}

/* Notes which records others process. The targets lock guards the links. */
static void noteLinks(unusedIoc *u, ebpfMonTargets *targets)
{
    ebpfMonTargetsLock(targets);
    for (uint32_t i = 0; i < u->cat->count; i++)
        for (uint32_t k = 0; k < u->cat->rec[i].toCount; k++)
            u->isLinked[u->cat->rec[i].to[k]] = 1;
    ebpfMonTargetsUnlock(targets);
}

/* --- the report ------------------------------------------------------------------------------------------------- */

static void addBlind(const unusedIoc *u)
{
    static const char *const ways[WAYS] = { "channels and subscriptions (its server's list could not be read)",
                                         "puts (not all probes were attached)", "reads (packets were not read)",
                                         "what came through connections with TLS, or older than the monitor, or with "
                                         "gaps" };

    for (int i = 0; i < WAYS; i++)
        if (u->blind[i] > DAY / 100)
            ebpfMonTextReportAdd(u->report, "  not seen for %.2f days: %s\n", (double)u->blind[i] / DAY, ways[i]);
        else if (u->blind[i] > EBPFMON_WATCH_GAP)
            ebpfMonTextReportAdd(u->report, "  not seen for %.0f minutes: %s\n", (double)u->blind[i] / 60, ways[i]);
}

static void addWatched(const unusedIoc *u)
{
    char since[24];
    int64_t from = u->first > u->from ? u->first : u->from;

    if (!u->first) {
        ebpfMonTextReportAdd(u->report, "  nothing is known: it was not watched since ebpfMonUsage named a file\n");
        return;
    }
    if (u->end && u->now > u->end + EBPFMON_WATCH_GAP)
        ebpfMonTextReportAdd(u->report, "  not watched for the last %.2f days\n", (double)(u->now - u->end) / DAY);
    formatTime(u->first, since, sizeof(since));
    ebpfMonTextReportAdd(u->report, "  watched since %s", since);
    if (u->first > u->from)
        ebpfMonTextReportAdd(u->report, ": only %.2f of these days; nothing is known of the time before\n",
                             (double)(u->now - from) / DAY);
    else
        ebpfMonTextReportAdd(u->report, "; %u gaps, %.2f days in all\n", u->gaps, (double)u->gapSeconds / DAY);
    addBlind(u);
}

static void addRecord(const unusedIoc *u, uint32_t i)
{
    static const char *const kinds[] = { "", "read", "written", "subscribed", "channel" };
    const lastUse *use = &u->last[i];
    char time[24] = "never seen";

    if (u->isUnseen)
        strcpy(time, "not known");
    else if (u->hasUnknown)
        strcpy(time, "perhaps by a group");
    if (use->last)
        formatTime(use->last, time, sizeof(time));
    CELL(u->report, "%s", ebpfMonCatalogueName(u->cat, i));
    CELL(u->report, " %s", time);
    CELL(u->report, " %s", use->last && use->kind <= ebpfMonUseConnect ? kinds[use->kind] : "-");
    CELL(u->report, " %s", u->isLinked[i] ? "link" : "-");
    CELL(u->report, " %s", use->who ? use->who : "");
}

static void addRecords(const unusedIoc *u)
{
    static const ebpfMonReportColumn columns[] = {
        {"record", -32}, {" last used", -21}, {" how", -12}, {" processed by", -14}, {" by", 0}
    };
    unsigned matching = 0, unused = 0;

    ebpfMonTextReportBeginTable(u->report, columns, sizeof(columns) / sizeof(columns[0]));
    for (uint32_t i = 0; i < u->cat->count; i++) {
        if (!epicsStrGlobMatch(ebpfMonCatalogueName(u->cat, i), u->pattern))
            continue;
        matching++;
        if (u->last[i].last >= u->from)
            continue;
        unused++;
        addRecord(u, i);
    }
    ebpfMonTextReportAdd(u->report, "%u of %u records were not used, as far as it was watched\n", unused, matching);
}

static int addIocLines(unusedIoc *u, const char *name, ebpfMonTargets *targets, ebpfMonUseStore *store, char *why,
                  size_t size)
{
    char from[24];

    formatTime(u->from, from, sizeof(from));
    ebpfMonTextReportAdd(u->report, "IOC %s: not used since %s\n", name, from);
    if (ebpfMonUseStoreEachUse(store, name, noteUse, u, why, size) ||
        ebpfMonUseStoreEachWatched(store, name, noteWatched, u, why, size))
        return -1;
    addWatched(u);
    if (!u->first)
        return 0;
    findMembers(u, targets, name);
    noteLinks(u, targets);
    addRecords(u);
    return 0;
}

typedef struct {
    char name[EBPFMON_IOCNAME_SIZE];
    ebpfMonCatalogue *cat;
} heldIoc;

static unsigned holdIocs(ebpfMonClientTable *table, heldIoc *held)
{
    const ebpfMonClientIoc *ioc;
    unsigned n;

    ebpfMonClientTableLock(table);
    for (n = 0; n < IOCS_MAX && (ioc = ebpfMonClientTableGet(table, n)) != NULL; n++) {
        held[n].cat = ebpfMonCatalogueHold(ioc->cat);
        memcpy(held[n].name, ioc->name, sizeof(held[n].name));
    }
    ebpfMonClientTableUnlock(table);
    return n;
}

int ebpfMonUnusedReportAdd(ebpfMonTextReport *report, ebpfMonClientTable *table, ebpfMonTargets *targets,
                           ebpfMonUseStore *store, double days, const char *pattern, char *why, size_t size)
{
    heldIoc *held = calloc(IOCS_MAX, sizeof(*held));
    unsigned n = held ? holdIocs(table, held) : 0;
    int status = 0;

    for (unsigned i = 0; i < n; i++) {
        uint32_t records = held[i].cat->count ? held[i].cat->count : 1;
        unusedIoc u = { .report = report, .cat = held[i].cat, .pattern = pattern };

        u.now = (int64_t)(ebpfMonClockReal() / EBPFMON_SECOND_NS);
        u.from = u.now - (int64_t)(days * DAY);
        u.last = calloc(records, sizeof(*u.last));
        u.isLinked = calloc(records, 1);
        u.other = calloc(OTHERS_MAX, sizeof(*u.other));
        if (status == 0 && u.last && u.isLinked && u.other)
            status = addIocLines(&u, held[i].name, targets, store, why, size);
        for (uint32_t k = 0; u.last && k < held[i].cat->count; k++)
            free(u.last[k].who);
        for (uint32_t k = 0; u.other && k < u.others && k < OTHERS_MAX; k++)
            free(u.other[k].use.who);
        free(u.other);
        free(u.last);
        free(u.isLinked);
        ebpfMonCatalogueRelease(held[i].cat);
    }
    free(held);
    return status;
}
