/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alarm.h>
#include <alarmString.h>

#include "common/clock.h"
#include "put/threadJob.h"
#include "trace/traceShape.h"
#include "trace/traceText.h"
#include "put/valueText.h"
#include "ioc/layout.h"
#include "ioc/syscallName.h"

#define TEXT_RECORDS 100
#define INDENT       20 /* levels that are moved to the right */

typedef struct {
    ebpfMonTarget *t;
    const ebpfMonTrace *trace;
    char    *buf;
    size_t   size, at;
    uint64_t begin;   /* monotonic ns of the trace: of its first lock */
    unsigned shown;
} text;

static void add(text *x, const char *fmt, ...) __attribute__((format(__printf__, 2, 3)));

static void add(text *x, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (x->at + 1 >= x->size)
        return;
    va_start(ap, fmt);
    n = vsnprintf(x->buf + x->at, x->size - x->at, fmt, ap);
    va_end(ap);
    x->at = n > 0 && (size_t)n < x->size - x->at ? x->at + (size_t)n : x->size - 1;
}

epicsTimeStamp ebpfMonTraceEnd(const ebpfMonTraceChain *half)
{
    return ebpfMonClockWallTime(half->chain.head.ktime);
}

const ebpfMonTraceChain *ebpfMonTraceNext(const ebpfMonTraceChain *half, uint32_t index, const ebpfMonTraceChain *after)
{
    const ebpfMonTraceChain *next = after ? after->next : half->next;

    while (next && !(next->chain.rootSlot == index && next->chain.causeBegin == half->chain.begin &&
                     next->chain.causeTid == half->chain.head.tid))
        next = next->next;
    return next;
}

static int hasRecord(const ebpfMonTraceShape *s, uint32_t index)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->record[i] == index)
            return 1;
    return 0;
}

const ebpfMonTraceChain *ebpfMonTraceHanded(const ebpfMonTraceChain *half, const ebpfMonTraceShape *shape, uint32_t index,
                                      const ebpfMonTraceChain *after)
{
    for (const ebpfMonTraceChain *next = after ? after->next : half->next; next; next = next->next)
        if (next->by.iocId && !next->chain.causeBegin && next->by.begin == half->chain.begin &&
            next->by.tid == half->chain.head.tid &&
            (index == UINT32_MAX ? !hasRecord(shape, next->chain.rootSlot) : next->chain.rootSlot == index))
            return next;
    return NULL;
}

void ebpfMonTraceHow(ebpfMonTarget *t, const ebpfMonTraceChain *half, char *buf, size_t size)
{
    if (strncmp(half->chain.comm, "scanOnce", sizeof(half->chain.comm)) == 0) {
        snprintf(buf, size, "scanOnce");
        return;
    }
    ebpfMonThreadJobReadScan(t, t->cat->rec[half->chain.rootSlot].addr, buf, size);
    if (half->delay || (strcmp(buf, "I/O Intr") != 0 && strcmp(buf, "Event") != 0))
        snprintf(buf, size, "callback");
}

int ebpfMonTraceHas(const ebpfMonTrace *trace, int (*wanted)(void *arg, uint32_t index), void *arg)
{
    for (const ebpfMonTraceChain *half = trace->first; half; half = half->next) {
        for (uint32_t i = 0; i < half->count; i++)
            if (wanted(arg, half->rec[i].slot))
                return 1;
        for (unsigned i = 0; i < EBPFMON_ASYNC; i++)
            if (half->chain.async[i] && wanted(arg, half->chain.async[i] - 1))
                return 1;
    }
    return 0;
}

void ebpfMonTraceCause(ebpfMonTarget *t, const ebpfMonTrace *trace, char *buf, size_t size)
{
    const struct ebpfMonChain *c = &trace->first->chain;
    char comm[EBPFMON_COMM_MAX], how[40];

    if (trace->put) {
        snprintf(buf, size, "put by %s (%s)", trace->put->who, trace->put->origin);
    } else if (trace->source.chain.iocId) {
        const ebpfMonCpLinkSource *s = &trace->source;

        snprintf(buf, size, "CP link from %s%s%s%s%s", s->record, s->ioc[0] ? " of " : "", s->ioc,
                 strcmp(s->record, s->root) ? ", chain of " : "", strcmp(s->record, s->root) ? s->root : "");
    } else if (c->outer) {
        snprintf(buf, size, "the chain of %s, in its course", ebpfMonCatalogueName(t->cat, c->outer - 1));
    } else if (c->causeBegin) {
        snprintf(buf, size, "completing what thread %u began %.1f ms before", c->causeTid,
                 (double)(c->begin - c->causeBegin) / 1e6);
    } else if (trace->first->byRoot) {
        ebpfMonTraceHow(t, trace->first, how, sizeof(how));
        snprintf(buf, size, "%s, asked for in the chain of %s", how,
                 ebpfMonCatalogueName(t->cat, trace->first->byRoot - 1));
    } else {
        snprintf(comm, sizeof(comm), "%.*s", EBPFMON_COMM_MAX - 1, c->comm);
        ebpfMonThreadJobDescribe(t, comm, !!(c->flags & EBPFMON_CHAIN_MAIN), t->cat->rec[c->rootSlot].addr, buf, size);
    }
}

void ebpfMonTraceValue(ebpfMonTarget *t, const struct ebpfMonChainRec *rec, char *buf, size_t size)
{
    const ebpfMonRecType *rt = &t->cat->rtype[t->cat->rec[rec->slot].rtype];
    const ebpfMonField *f = rt->valField >= 0 ? &t->cat->field[rt->valField] : NULL;
    ebpfMonValue v = { .data = rec->val, .len = 16, .size = 16, .count = 1 };

    buf[0] = 0;
    if (!f || f->arrayCount || f->type > ebpfMonDbfDevice || f->special == LAYOUT_SPC_DBADDR)
        return;
    v.type = f->type;
    ebpfMonValueTextFormat(t, f, t->cat->rec[rec->slot].addr, &v, buf, size);
}

/* When the record was stamped, after the trace's begin; ns. Its clock is the IOC's, which is this host's. */
static int64_t after(const text *x, const struct ebpfMonChainRec *r)
{
    epicsTimeStamp begin = ebpfMonClockWallTime(x->begin);

    return ebpfMonStampNs(r->time) - ((int64_t)begin.secPastEpoch * 1000000000 + begin.nsec);
}

static void line(text *x, uint32_t index, const struct ebpfMonChainRec *r, unsigned depth, const char *via)
{
    const ebpfMonCatalogue *cat = x->t->cat;
    const char *rtype = cat->rtype[cat->rec[index].rtype].name;
    char value[80];

    if (r)
        add(x, "  %10.1f us ", (double)after(x, r) / 1000);
    else
        add(x, "  %10s us ", "-");
    add(x, "%*s%s%s%s (%s)", (int)(depth < INDENT ? 2 * depth : 2 * INDENT) + 1, "", via, via[0] ? " > " : "",
        ebpfMonCatalogueName(cat, index), rtype);
    if (r) {
        ebpfMonTraceValue(x->t, r, value, sizeof(value));
        add(x, " = %s", value);
        if (r->sevr && r->sevr < ALARM_NSEV && r->stat < ALARM_NSTATUS)
            add(x, "  %s %s", epicsAlarmSeverityStrings[r->sevr], epicsAlarmConditionStrings[r->stat]);
    } else {
        add(x, " begun");
    }
}

/* Where a half's time went. */
static void account(text *x, const struct ebpfMonChain *c)
{
    /* what it slept waiting for the lock is no sleep of the chain */
    uint64_t slept = c->blocked > c->wait ? c->blocked - c->wait : 0, held = c->head.ktime - c->begin - c->wait;
    char name[24];

    add(x, "  %.*s on CPU %u: held the lock %.1f us", EBPFMON_COMM_MAX - 1, c->comm, c->cpu, (double)held / 1000);
    if (c->handed)
        add(x, ", after %.1f us in the queue", (double)c->handed / 1000);
    if (slept >= 1000)
        add(x, ", slept %.1f us", (double)slept / 1000);
    if (slept >= 1000 && c->syscall >= 0) {
        ebpfMonSyscallName(c->syscall, name, sizeof(name));
        add(x, " (at most %.1f in %s)", (double)c->longest / 1000, name);
    }
    if (c->queued >= 1000)
        add(x, ", waited %.1f us for a CPU", (double)c->queued / 1000);
    add(x, "\n");
}

static void tellHalf(text *x, const ebpfMonTraceChain *half, unsigned base, unsigned level);

/* What a half handed over, below its record of this index or, UINT32_MAX, below itself. */
static void tellHanded(text *x, const ebpfMonTraceChain *half, const ebpfMonTraceShape *s, uint32_t index, unsigned base,
                       unsigned level)
{
    const ebpfMonTraceChain *next = NULL;

    while ((next = ebpfMonTraceHanded(half, s, index, next)))
        tellHalf(x, next, base, level);
}

static void tellHalf(text *x, const ebpfMonTraceChain *half, unsigned base, unsigned level)
{
    static ebpfMonTraceShape *shapes[EBPFMON_TRACE_CHAINS]; /* each is large, and few are ever needed */
    int completes = level && half->chain.causeBegin;
    uint64_t since = completes ? half->chain.causeBegin : half->by.begin;
    ebpfMonTraceShape *s;
    char how[40];

    if (level < EBPFMON_TRACE_CHAINS && !shapes[level])
        shapes[level] = malloc(sizeof(*s));
    s = level < EBPFMON_TRACE_CHAINS ? shapes[level] : NULL;
    if (!s || ebpfMonTraceShapeMake(x->t, half, s)) {
        add(x, "  … deeper than can be told\n");
        return;
    }
    if (completes)
        snprintf(how, sizeof(how), "async");
    else
        ebpfMonTraceHow(x->t, half, how, sizeof(how));
    if (completes && half->chain.flags & EBPFMON_CHAIN_BUSY)
        base--; /* its root was told of, and goes on */
    for (uint32_t k = 0; k < s->nodes; k++) {
        uint32_t i = s->order[k], index = s->record[i];
        const ebpfMonTreeNode *n = &s->node[i];
        const ebpfMonTraceChain *next = NULL;
        const char *via = n->parent != EBPFMON_NO_PARENT ? x->t->cat->field[n->via].name : n->depth ? "?" :
                          level ? how : "";

        if (x->shown == TEXT_RECORDS)
            return;
        if (s->rec[i] || n->depth || !completes) {
            line(x, index, s->rec[i], base + n->depth, via);
            if (level && !n->depth)
                add(x, "  %.1f ms later, in %.*s", (double)(half->chain.begin - since) / 1e6,
                    EBPFMON_COMM_MAX - 1, half->chain.comm);
            add(x, "\n");
            x->shown++;
        }
        while (!s->rec[i] && (next = ebpfMonTraceNext(half, index, next)))
            tellHalf(x, next, base + n->depth + 1, level + 1);
        /* below those that end here */
        for (uint32_t deep = k + 1 < s->nodes ? s->node[s->order[k + 1]].depth : 0;
             i != EBPFMON_NO_PARENT && s->node[i].depth >= deep; i = s->node[i].parent)
            tellHanded(x, half, s, s->record[i], base + s->node[i].depth + 1, level + 1);
    }
    tellHanded(x, half, s, UINT32_MAX, base + 1, level + 1);
}

size_t ebpfMonTraceText(ebpfMonTarget *t, const ebpfMonTrace *trace, char *buf, size_t size)
{
    const struct ebpfMonChain *c = &trace->first->chain, *end = &trace->last->chain;
    text x = { .t = t, .trace = trace, .buf = buf, .size = size, .begin = c->begin + c->wait };
    epicsTimeStamp stamp = ebpfMonTraceEnd(trace->last);
    uint32_t total = 0;
    char when[64], cause[512];

    for (const ebpfMonTraceChain *half = trace->first; half; half = half->next)
        total += half->chain.total;
    ebpfMonTraceCause(t, trace, cause, sizeof(cause));
    epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S.%06f", &stamp);
    buf[0] = 0;
    add(&x, "%s %s: %s %.1f us, waited %.1f us for the lock, %u record%s", when, t->name,
        ebpfMonCatalogueName(t->cat, c->rootSlot), (double)(end->head.ktime - x.begin) / 1000, (double)c->wait / 1000,
        total, total == 1 ? "" : "s");
    if (trace->chains > 1)
        add(&x, " in %u steps", trace->chains);
    add(&x, ", by %s\n", cause);
    tellHalf(&x, trace->first, 0, 0);
    if (x.shown == TEXT_RECORDS && total > x.shown)
        add(&x, "  … %u more\n", total - x.shown);
    for (unsigned i = 0; i < EBPFMON_TRACE_BUSY; i++)
        if (trace->busy[i] && trace->busy[i] <= t->cat->count)
            add(&x, "  incomplete: %s processes still\n", ebpfMonCatalogueName(t->cat, trace->busy[i] - 1));
    if (c->flags & EBPFMON_CHAIN_LATE)
        add(&x, "  incomplete: it was under way when it was looked at first\n");
    if (trace->handed)
        add(&x, "  incomplete: of what it handed over to other threads %u did not come\n", trace->handed);
    if (trace->cut && !trace->handed)
        add(&x, "  incomplete: not all that belongs to it was kept\n");
    for (const ebpfMonTraceChain *half = trace->first; half; half = half->next)
        account(&x, &half->chain);
    return x.at;
}
