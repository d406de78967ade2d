/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "export/shared/jsonGen.h"
#include "history/historyMinutes.h"

#define MINUTE_NS  (60 * EBPFMON_SECOND_NS)
#define CLIENTS_NS (10 * EBPFMON_SECOND_NS) /* clients/clients.h: a look comes as often */
#define LOSING_NS  (600 * EBPFMON_SECOND_NS) /* a loss that goes on is told again after this */
#define TOP        20  /* records of each list, a minute */
#define SEARCHED   60  /* s for which nobody answers a search before it is told */
#define ROW_SIZE   400

/* An IOC in the present minute. */
typedef struct {
    char     name[EBPFMON_HEALTH_NAME]; /* empty: free */
    int      isSeen;       /* at this look */
    double   cpu;          /* sum of the looks */
    unsigned looks;
    double   hold, callback, once; /* the longest; 0: none was measured */
    uint64_t processed, puts;      /* counts at the begin of the minute */
    ebpfMonLevel level;
} iocMinute;

/* A root at the begin of the minute. */
typedef struct {
    char     name[EBPFMON_NAME_SIZE];
    uint64_t count;
    double   sum;          /* µs */
    double   max;
} rootMinute;

typedef struct {
    char client[128], ioc[61];
} seenClient;

struct ebpfMonHistoryMinutes {
    ebpfMonHistoryMinuteFn add;
    void *arg;
    ebpfMonJson json;
    uint64_t begin;        /* of the minute; monotonic ns; 0: there was no look yet */
    uint64_t clientsAt;
    double   before;       /* s since 1990: the last look for searches and servers; 0: none */
    uint64_t late;         /* late periods when scans became late; valid if isLate */
    int      isLate, isFarLate; /* told */
    iocMinute  ioc[EBPFMON_HEALTH_IOCS];
    rootMinute root[EBPFMON_TOP_MAX];
    unsigned   roots;
    seenClient client[EBPFMON_CLIENT_ROWS];
    unsigned   clients;
    int        areClientsKnown; /* all clients were published at the last look */
    uint64_t   lostBefore[EBPFMON_LOSSES_MAX + 1]; /* counts at the last look for losses; the last one: of packets */
    uint64_t   lost[EBPFMON_LOSSES_MAX + 1]; /* … what was lost since then and is not told */
    uint64_t   lostSince;  /* monotonic ns: since when, at the earliest */
    int        isLosing;   /* something was lost at the last look */
};

ebpfMonHistoryMinutes *ebpfMonHistoryMinutesNew(ebpfMonHistoryMinuteFn add, void *arg)
{
    ebpfMonHistoryMinutes *m = calloc(1, sizeof(*m));

    if (m) {
        m->add = add;
        m->arg = arg;
    }
    return m;
}

static void addText(ebpfMonHistoryMinutes *m, int automatic, const char *kind, const char *ioc, const char *pv,
                    const char *format, ...) __attribute__((format(__printf__, 6, 7)));

static void addText(ebpfMonHistoryMinutes *m, int automatic, const char *kind, const char *ioc, const char *pv,
                    const char *format, ...)
{
    char text[ROW_SIZE];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    m->add(m->arg, automatic, kind, ioc, pv, text);
}

/* --- figures of a minute --- */

static double roundTo3(double x)
{
    double unit = x ? pow(10, floor(log10(fabs(x))) - 2) : 1;

    return round(x / unit) * unit;
}

static void addFigure(ebpfMonHistoryMinutes *m, const char *key, double value)
{
    char text[32];

    if (isnan(value) || isinf(value))
        return;
    snprintf(text, sizeof(text), "%.4g", roundTo3(value));
    ebpfMonJsonAddNumber(&m->json, key, ebpfMonJsonIsNumber(text, strlen(text)) ? text : NULL, value);
}

/* 0: there is no memory. */
static int beginRow(ebpfMonHistoryMinutes *m, char text[ROW_SIZE])
{
    return ebpfMonJsonBegin(&m->json, text, ROW_SIZE - 1) == 0;
}

static void endRow(ebpfMonHistoryMinutes *m, const char *ioc, const char *pv, char text[ROW_SIZE])
{
    size_t length = ebpfMonJsonEnd(&m->json);

    text[length] = 0;
    if (length)
        m->add(m->arg, 1, "minute", ioc, pv, text);
}

/* The place of this IOC, or a free one. NULL: there is none. */
static iocMinute *findIoc(ebpfMonHistoryMinutes *m, const char *name)
{
    iocMinute *free = NULL;

    for (unsigned i = 0; i < EBPFMON_HEALTH_IOCS; i++) {
        if (strcmp(m->ioc[i].name, name) == 0)
            return &m->ioc[i];
        if (!free && !m->ioc[i].name[0])
            free = &m->ioc[i];
    }
    return free;
}

static const ebpfMonIocRow *findRow(const ebpfMonPublished *p, const char *name)
{
    for (unsigned i = p->iocs.gone; i < p->iocs.gone + p->iocs.count && i < EBPFMON_IOCS_MAX; i++)
        if (strcmp(p->iocs.ioc[i].name, name) == 0)
            return &p->iocs.ioc[i];
    return NULL;
}

static uint64_t countPuts(const ebpfMonPublished *p, const char *name)
{
    for (unsigned i = 0; i < p->puts.iocCount; i++)
        if (strcmp(p->puts.ioc[i].name, name) == 0)
            return p->puts.ioc[i].puts;
    return 0;
}

static double maxOf(double a, double b)
{
    return isnan(b) || a > b ? a : b;
}

/* A new level of an IOC is a row; the first one is not. */
static void noteLevel(ebpfMonHistoryMinutes *m, iocMinute *i, const ebpfMonIocRow *row, int isNew)
{
    if (row && !isNew && row->level != i->level)
        addText(m, 0, "event", i->name, NULL, "IOC %s is watched at level %s, no more at %s%s%s", i->name,
                ebpfMonLevelName(row->level), ebpfMonLevelName(i->level), row->note[0] ? ": " : "", row->note);
    if (row)
        i->level = row->level;
}

static void lookAtIocs(ebpfMonHistoryMinutes *m, const ebpfMonPublished *p)
{
    for (unsigned k = 0; k < EBPFMON_HEALTH_IOCS; k++)
        m->ioc[k].isSeen = 0;
    for (unsigned k = 0; k < p->health.iocs; k++) {
        const ebpfMonIocHealth *h = &p->health.ioc[k];
        const ebpfMonIocRow *row = findRow(p, h->name);
        iocMinute *i = findIoc(m, h->name);
        int isNew;

        if (!i)
            continue;
        isNew = !i->name[0];
        if (isNew) {
            memcpy(i->name, h->name, sizeof(i->name));
            i->processed = row ? row->procCount : 0;
            i->puts = countPuts(p, h->name);
        }
        noteLevel(m, i, row, isNew);
        i->isSeen = 1;
        i->cpu += isnan(h->cpu) ? 0 : h->cpu;
        i->looks++;
        i->hold = maxOf(i->hold, h->hold);
        i->callback = maxOf(i->callback, maxOf(maxOf(h->callback[0], h->callback[1]), h->callback[2]));
        i->once = maxOf(i->once, h->once);
    }
    for (unsigned k = 0; k < EBPFMON_HEALTH_IOCS; k++)
        if (!m->ioc[k].isSeen)
            memset(&m->ioc[k], 0, sizeof(m->ioc[k]));
}

static void writeIoc(ebpfMonHistoryMinutes *m, const ebpfMonPublished *p, const ebpfMonIocHealth *h, double seconds)
{
    iocMinute *i = findIoc(m, h->name);
    const ebpfMonIocRow *row = findRow(p, h->name);
    uint64_t puts = countPuts(p, h->name);
    char text[ROW_SIZE];

    if (!i || !i->looks || !beginRow(m, text))
        return;
    addFigure(m, "cpu", i->cpu / i->looks);
    addFigure(m, "memory", h->mem);
    addFigure(m, "threads", h->threads);
    addFigure(m, "files", h->fds);
    if (h->clients >= 0)
        addFigure(m, "clients", h->clients);
    if (row && row->procCount >= i->processed)
        addFigure(m, "processed_per_s", (double)(row->procCount - i->processed) / seconds);
    if (puts >= i->puts)
        addFigure(m, "puts_per_s", (double)(puts - i->puts) / seconds);
    if (i->hold > 0)
        addFigure(m, "hold_max_ms", i->hold);
    if (i->callback > 0)
        addFigure(m, "callback_max_ms", i->callback);
    if (i->once > 0)
        addFigure(m, "once_max_ms", i->once);
    endRow(m, h->name, NULL, text);
    i->processed = row ? row->procCount : 0;
    i->puts = puts;
    i->cpu = i->hold = i->callback = i->once = 0;
    i->looks = 0;
}

static const rootMinute *findRoot(const ebpfMonHistoryMinutes *m, const char *name)
{
    for (unsigned i = 0; i < m->roots; i++)
        if (strcmp(m->root[i].name, name) == 0)
            return &m->root[i];
    return NULL;
}

/* The mean of this minute alone. The maximum is that since the start, so it is written when it grew. */
static void writeRoots(ebpfMonHistoryMinutes *m, const ebpfMonChainValues *chains, double seconds)
{
    unsigned written = 0;

    for (unsigned i = 0; i < chains->slowestCount && written < TOP; i++) {
        const ebpfMonChainRow *c = &chains->slowest[i];
        const rootMinute *before = findRoot(m, c->name);
        char text[ROW_SIZE];

        if (!before || c->count <= before->count || !beginRow(m, text))
            continue;
        addFigure(m, "chains_per_s", (double)(c->count - before->count) / seconds);
        addFigure(m, "mean_us", (c->mean * (double)c->count - before->sum) / (double)(c->count - before->count));
        if (c->max > before->max)
            addFigure(m, "max_us", c->max);
        endRow(m, c->ioc, c->root, text);
        written++;
    }
    for (m->roots = 0; m->roots < chains->slowestCount; m->roots++) {
        const ebpfMonChainRow *c = &chains->slowest[m->roots];
        rootMinute *r = &m->root[m->roots];

        memcpy(r->name, c->name, sizeof(r->name));
        r->count = c->count;
        r->sum = c->mean * (double)c->count;
        r->max = c->max;
    }
}

static void writeBusiest(ebpfMonHistoryMinutes *m, const ebpfMonProcValues *proc)
{
    for (unsigned i = 0; i < proc->busiestCount && i < TOP; i++) {
        char text[ROW_SIZE];

        if (proc->busiest[i].rate <= 0 || !beginRow(m, text))
            continue;
        addFigure(m, "processed_per_s", proc->busiest[i].rate);
        endRow(m, NULL, proc->busiest[i].name, text);
    }
}

/* --- changes --- */

static void lookForLateScans(ebpfMonHistoryMinutes *m, const ebpfMonHealth *h)
{
    if (h->lateNow && !m->isLate) {
        addText(m, 0, "event", NULL, NULL, "scan late: %s", h->lateText);
        m->late = h->lateCount;
    } else if (!h->lateNow && m->isLate) {
        addText(m, 0, "event", NULL, NULL, "scans are late no more; there were %llu late periods",
                (unsigned long long)(h->lateCount - m->late + 1));
    }
    if (h->lateNow && h->isFarLate && !m->isFarLate)
        addText(m, 0, "event", NULL, NULL, EBPFMON_HISTORY_FAR_LATE "%s", h->lateText);
    m->isLate = h->lateNow != 0;
    m->isFarLate = m->isLate && (m->isFarLate || h->isFarLate);
}

static int hasClient(const seenClient *list, unsigned count, const char *client, const char *ioc)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(list[i].client, client) == 0 && strcmp(list[i].ioc, ioc) == 0)
            return 1;
    return 0;
}

/* Clients that came and went within ten seconds are not seen. If not all are published, who came or went is not
 * known. */
static void lookForClients(ebpfMonHistoryMinutes *m, const ebpfMonClientValues *v)
{
    int areAll = v->rows == v->count && !v->unread && (!v->iocPattern[0] || strcmp(v->iocPattern, "*") == 0) &&
                 (!v->pvPattern[0] || strcmp(v->pvPattern, "*") == 0);
    seenClient now[EBPFMON_CLIENT_ROWS];
    unsigned count = areAll ? v->rows : 0;

    for (unsigned i = 0; i < count; i++) {
        const ebpfMonClientRow *c = &v->row[i];

        memcpy(now[i].client, c->name, sizeof(now[i].client));
        memcpy(now[i].ioc, c->ioc, sizeof(now[i].ioc));
        if (m->areClientsKnown && !hasClient(m->client, m->clients, c->name, c->ioc))
            addText(m, 1, "client", c->ioc, NULL, "client %s%s%s%s is connected to IOC %s", c->name,
                    c->command[0] ? " (" : "", c->command, c->command[0] ? ")" : "", c->ioc);
    }
    for (unsigned i = 0; areAll && m->areClientsKnown && i < m->clients; i++)
        if (!hasClient(now, count, m->client[i].client, m->client[i].ioc))
            addText(m, 1, "client", m->client[i].ioc, NULL, "client %s has left IOC %s", m->client[i].client,
                    m->client[i].ioc);
    memcpy(m->client, now, count * sizeof(now[0]));
    m->clients = count;
    m->areClientsKnown = areAll;
}

/* Puts and chains of this time may be missing. The begin of a loss is told at once, what follows in one row. */
static void tellLosses(ebpfMonHistoryMinutes *m, const ebpfMonLossValues *v, uint64_t now)
{
    char text[ROW_SIZE] = "";
    uint64_t sum = 0;

    for (unsigned i = 0; i <= EBPFMON_LOSSES_MAX; i++)
        if (m->lost[i]) {
            ebpfMonTextAdd(text, sizeof(text), "%s%s (%llu)", sum ? ", " : "",
                           i < EBPFMON_LOSSES_MAX ? v->by[i].reason : "packets", (unsigned long long)m->lost[i]);
            sum += m->lost[i];
        }
    addText(m, 0, "lost", NULL, NULL, "%llu %llu events that the monitor did not see: %s", (unsigned long long)sum,
            (unsigned long long)(now - m->lostSince), text);
    memset(m->lost, 0, sizeof(m->lost));
    m->lostSince = now;
}

static void lookForLosses(ebpfMonHistoryMinutes *m, const ebpfMonLossValues *v, uint64_t packets, uint64_t now)
{
    int isLosing = 0, isUntold = 0;

    for (unsigned i = 0; i <= EBPFMON_LOSSES_MAX; i++) {
        uint64_t count = i < EBPFMON_LOSSES_MAX ? v->by[i].count : packets;
        uint64_t more = count - (count < m->lostBefore[i] ? 0 : m->lostBefore[i]); /* LOST_RESET makes it smaller */

        m->lostBefore[i] = count;
        m->lost[i] += more;
        isLosing |= more > 0;
        isUntold |= m->lost[i] > 0;
    }
    if (isUntold && (!isLosing || !m->isLosing || now - m->lostSince > LOSING_NS))
        tellLosses(m, v, now);
    if (!isUntold)
        m->lostSince = now;
    m->isLosing = isLosing;
}

static double getSeconds(const epicsTimeStamp *stamp)
{
    return stamp->secPastEpoch + stamp->nsec / 1e9;
}

/* Each once: searches that nobody has answered for a minute, servers that were heard first or restarted since the last
 * look. */
static void lookForSearches(ebpfMonHistoryMinutes *m, const ebpfMonSearches *s)
{
    epicsTimeStamp stamp = ebpfMonClockStamp(ebpfMonClockReal());
    double now = getSeconds(&stamp), before = m->before;

    m->before = now;
    if (!before || now < before) /* the clock was set back */
        return;
    for (unsigned i = 0; i < s->names; i++) {
        const ebpfMonSearchRow *r = &s->name[i];
        double first = getSeconds(&r->first);

        if (first > before - SEARCHED && first <= now - SEARCHED)
            addText(m, 0, "event", NULL, r->name, "nobody answers the search for %s by %s", r->name, r->who);
    }
    for (unsigned i = 0; i < s->servers; i++) {
        const ebpfMonBeaconRow *r = &s->server[i];
        double began = getSeconds(&r->began);

        if (began > before && began <= now)
            addText(m, 0, "event", NULL, NULL, "server %s %s", r->name,
                    r->restarts ? "has restarted" : "is heard for the first time");
    }
}

void ebpfMonHistoryMinutesLook(ebpfMonHistoryMinutes *m, const ebpfMonPublished *p,
                               const ebpfMonClientValues *clients, uint64_t now)
{
    double seconds = (double)(now - m->begin) / EBPFMON_SECOND_NS;

    if (!m->lostSince)
        m->lostSince = now;
    if (!p->isMeasured)
        return;
    lookAtIocs(m, p);
    lookForLateScans(m, &p->health);
    if (now - m->clientsAt >= CLIENTS_NS) {
        if (clients)
            lookForClients(m, clients);
        lookForLosses(m, &p->losses, p->packets.lost, now);
        m->clientsAt = now;
    }
    if (!m->begin) {
        m->begin = now;
        lookForSearches(m, &p->searches);
    }
    if (now - m->begin < MINUTE_NS)
        return;
    for (unsigned i = 0; i < p->health.iocs; i++)
        writeIoc(m, p, &p->health.ioc[i], seconds);
    writeBusiest(m, &p->processings);
    writeRoots(m, &p->chains, seconds);
    lookForSearches(m, &p->searches);
    m->begin = now;
}
