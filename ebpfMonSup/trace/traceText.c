/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <alarm.h>
#include <alarmString.h>

#include "common/clock.h"
#include "common/text.h"
#include "host/syscallName.h"
#include "ioc/baseLayout.h"
#include "put/putWriter.h"
#include "put/valueText.h"
#include "trace/trace.h"
#include "trace/traceText.h"

/* --- words for chains --- */

void ebpfMonTraceDescribeHandOver(ebpfMonTarget *t, const ebpfMonTraceChain *c, char *buf, size_t size)
{
    if (strncmp(c->chain.comm, "scanOnce", sizeof(c->chain.comm)) == 0) {
        snprintf(buf, size, "scanOnce");
        return;
    }
    ebpfMonThreadJobReadScan(t, t->cat->rec[c->chain.rootSlot].addr, buf, size);
    if (c->delay || (strcmp(buf, "I/O Intr") != 0 && strcmp(buf, "Event") != 0))
        snprintf(buf, size, "callback");
}

static void describeCpLink(const ebpfMonCpLinkSource *s, char *buf, size_t size)
{
    int isRoot = strcmp(s->record, s->root) == 0;

    snprintf(buf, size, "CP link from %s%s%s%s%s", s->record, s->ioc[0] ? " of " : "", s->ioc,
             isRoot ? "" : ", chain of ", isRoot ? "" : s->root);
}

void ebpfMonTraceDescribeCause(ebpfMonTarget *t, const ebpfMonTrace *trace, char *buf, size_t size)
{
    const struct ebpfMonChain *c = &trace->first->chain;
    char comm[EBPFMON_COMM_MAX], how[40];

    if (trace->put) {
        snprintf(buf, size, "put by %s (%s)", trace->put->who, trace->put->origin);
    } else if (trace->source.chain.iocId) {
        describeCpLink(&trace->source, buf, size);
    } else if (c->outer) {
        snprintf(buf, size, "the chain of %s, in its course", ebpfMonCatalogueName(t->cat, c->outer - 1));
    } else if (c->causeBegin) {
        snprintf(buf, size, "completing what thread %u began %.1f ms before", c->causeTid,
                 (double)(c->begin - c->causeBegin) / 1e6);
    } else if (trace->first->sourceRoot) {
        ebpfMonTraceDescribeHandOver(t, trace->first, how, sizeof(how));
        snprintf(buf, size, "%s, asked for in the chain of %s", how,
                 ebpfMonCatalogueName(t->cat, trace->first->sourceRoot - 1));
    } else {
        ebpfMonTextCopyBytes(comm, sizeof(comm), c->comm, EBPFMON_COMM_MAX - 1);
        ebpfMonThreadJobDescribe(t, &(ebpfMonThreadJob){ comm, !!(c->flags & EBPFMON_CHAIN_MAIN),
                                                         t->cat->rec[c->rootSlot].addr, 0 }, buf, size);
    }
}

void ebpfMonTraceDescribeValue(ebpfMonTarget *t, const struct ebpfMonChainRec *rec, char *buf, size_t size)
{
    const ebpfMonRecType *rt = &t->cat->rtype[t->cat->rec[rec->slot].rtype];
    const ebpfMonField *f = rt->valField >= 0 ? &t->cat->field[rt->valField] : NULL;
    ebpfMonValue v = { .data = rec->val, .len = 16, .size = 16, .count = 1 };

    buf[0] = 0;
    if (!f || f->arrayCount || f->type > ebpfMonDbfDevice || f->special == EBPFMON_SPC_DBADDR)
        return;
    v.type = f->type;
    ebpfMonValueTextFormat(t, f, t->cat->rec[rec->slot].addr, &v, buf, size);
}

/* Nonzero: the value is a state, of which only the memory of the IOC has the text. */
static int isState(const ebpfMonTarget *t, const struct ebpfMonChainRec *rec)
{
    const ebpfMonRecType *rt = &t->cat->rtype[t->cat->rec[rec->slot].rtype];
    const ebpfMonField *f = rt->valField >= 0 ? &t->cat->field[rt->valField] : NULL;

    return f && f->type >= ebpfMonDbfEnum && f->type <= ebpfMonDbfDevice;
}

static void findWords(ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    char text[512];

    ebpfMonTraceDescribeCause(t, trace, text, sizeof(text));
    for (const ebpfMonTraceChain *c = trace->first; c; c = c->next) {
        if (c != trace->first)
            ebpfMonTraceDescribeHandOver(t, c, text, sizeof(text));
        for (uint32_t i = 0; i < c->count; i++)
            if (isState(t, &c->rec[i]))
                ebpfMonTraceDescribeValue(t, &c->rec[i], text, sizeof(text));
    }
}

ebpfMonTarget *ebpfMonTraceFindTarget(ebpfMonTargets *targets, ebpfMonTrace *trace)
{
    ebpfMonTarget *t = ebpfMonTargetsFindById(targets, trace->iocId);

    if (!t || !t->cat || !ebpfMonCatalogueGoesOn(t->cat, trace->cat))
        return NULL;
    if (t->cat != trace->cat) {
        ebpfMonCatalogueRelease(trace->cat);
        trace->cat = ebpfMonCatalogueHold(t->cat);
    }
    return t;
}

void ebpfMonTraceReadWords(ebpfMonTargets *targets, ebpfMonTrace *trace, ebpfMonTraceTestFn isWanted, void *arg)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(targets);
    ebpfMonTarget *t;

    ebpfMonLateReadsBegin(reads);
    do {
        ebpfMonTargetsLock(targets);
        t = ebpfMonTraceFindTarget(targets, trace);
        if (t && isWanted(arg, t, trace))
            findWords(t, trace);
        ebpfMonTargetsUnlock(targets);
    } while (ebpfMonLateReadsMake(reads));
}

uint64_t ebpfMonTraceChainGetSlept(const ebpfMonTraceChain *c)
{
    return c->chain.blocked > c->chain.wait ? c->chain.blocked - c->chain.wait : 0;
}

/* --- traces as text --- */

#define RECORDS_MAX 100
#define INDENT      20 /* levels that are moved to the right */
#define THREAD_SIZE (4 * EBPFMON_COMM_MAX) /* a thread's name with each byte escaped */
#define SHOW_NS     1000u /* sleeping and waiting below this is not shown */

typedef struct {
    ebpfMonTarget *t;
    const ebpfMonTrace *trace;
    char    *buf;
    size_t   size, length;
    uint64_t begin;   /* of the trace, when it got its first lock; ns since 1970 */
    unsigned shown;   /* records */
} traceWriter;

static void appendText(traceWriter *x, const char *fmt, ...) __attribute__((format(__printf__, 2, 3)));

static void appendText(traceWriter *x, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (x->length + 1 >= x->size)
        return;
    va_start(ap, fmt);
    n = vsnprintf(x->buf + x->length, x->size - x->length, fmt, ap);
    va_end(ap);
    x->length = n > 0 && (size_t)n < x->size - x->length ? x->length + (size_t)n : x->size - 1;
}

/* When it was stamped, after the begin of the trace: the clock of the IOC is that of this host. */
static void writeTime(traceWriter *x, const struct ebpfMonChainRec *rec)
{
    if (rec)
        appendText(x, "  %10.3f ms ", (double)(ebpfMonStampToUnix(rec->time) - (int64_t)x->begin) / 1e6);
    else
        appendText(x, "  %10s ms ", "-");
}

static void writeState(traceWriter *x, const struct ebpfMonChainRec *rec)
{
    char value[80];

    if (!rec) {
        appendText(x, " begun");
        return;
    }
    ebpfMonTraceDescribeValue(x->t, rec, value, sizeof(value));
    if (value[0])
        appendText(x, " = %s", value);
    if (rec->sevr && rec->sevr < ALARM_NSEV && rec->stat < ALARM_NSTATUS)
        appendText(x, "  %s %s", epicsAlarmSeverityStrings[rec->sevr], epicsAlarmConditionStrings[rec->stat]);
}

/* By what the record was made to process. */
static void describeVia(const traceWriter *x, const ebpfMonWalkChain *c, const ebpfMonWalkRecord *r, char *buf,
                        size_t size)
{
    if (r->parent != EBPFMON_NO_PARENT)
        snprintf(buf, size, "%s", r->via);
    else if (!r->isRoot)
        snprintf(buf, size, "?");
    else if (c->completes)
        snprintf(buf, size, "async");
    else if (c->level)
        ebpfMonTraceDescribeHandOver(x->t, c->chain, buf, size);
    else
        buf[0] = 0;
}

/* How much later than the chain above it this chain began, and where. */
static void writeDelay(traceWriter *x, const ebpfMonWalkChain *c)
{
    uint64_t since = c->completes ? c->chain->chain.causeBegin : c->chain->source.begin;
    char thread[THREAD_SIZE];

    ebpfMonTextCopyBytes(thread, sizeof(thread), c->chain->chain.comm, EBPFMON_COMM_MAX - 1);
    appendText(x, "  %.1f ms later, in %s", (double)(c->chain->chain.begin - since) / 1e6, thread);
}

static int writeRecord(void *arg, const ebpfMonWalkChain *c, const ebpfMonWalkRecord *r)
{
    traceWriter *x = arg;
    const ebpfMonCatalogue *cat = x->t->cat;
    char via[40];

    if (x->shown == RECORDS_MAX)
        return 1;
    if (r->isRepeated)
        return 0;
    describeVia(x, c, r, via, sizeof(via));
    writeTime(x, r->rec);
    appendText(x, "%*s%s%s%s (%s)", (int)(r->depth < INDENT ? 2 * r->depth : 2 * INDENT) + 1, "", via,
               via[0] ? " > " : "", ebpfMonCatalogueName(cat, r->index), cat->rtype[cat->rec[r->index].rtype].name);
    writeState(x, r->rec);
    if (c->level && r->isRoot)
        writeDelay(x, c);
    appendText(x, "\n");
    x->shown++;
    return 0;
}

static void writeSkipped(void *arg, const ebpfMonTraceChain *c)
{
    traceWriter *x = arg;

    appendText(x, "  ... no memory for the chain of %s\n", ebpfMonCatalogueName(x->t->cat, c->chain.rootSlot));
}

static void writeHeader(traceWriter *x, uint64_t unixOffset, uint32_t total)
{
    const struct ebpfMonChain *c = &x->trace->first->chain;
    uint64_t end = x->trace->end + unixOffset;
    epicsTimeStamp stamp = ebpfMonClockStamp(end);
    char when[64], cause[512];

    ebpfMonTraceDescribeCause(x->t, x->trace, cause, sizeof(cause));
    epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S.%06f", &stamp);
    appendText(x, "%s %s: %s %.3f ms, waited %.3f ms for the lock, %u record%s", when, x->t->name,
               ebpfMonCatalogueName(x->t->cat, c->rootSlot), (double)(end - x->begin) / 1e6, (double)c->wait / 1e6,
               total, total == 1 ? "" : "s");
    if (x->trace->chains > 1)
        appendText(x, " in %u steps", x->trace->chains);
    appendText(x, ", by %s\n", cause);
}

/* Why the trace is not all that belongs to it. */
static void writeIncomplete(traceWriter *x)
{
    const ebpfMonTrace *trace = x->trace;

    for (unsigned i = 0; i < EBPFMON_TRACE_ASYNC; i++)
        if (trace->async[i] && trace->async[i] <= x->t->cat->count)
            appendText(x, "  incomplete: %s processes still\n", ebpfMonCatalogueName(x->t->cat, trace->async[i] - 1));
    if (trace->first->chain.flags & EBPFMON_CHAIN_LATE)
        appendText(x, "  incomplete: it was under way when it was looked at first\n");
    if (trace->lacksCause)
        appendText(x, "  incomplete: the message of its put was not seen\n");
    if (trace->lacksCpSource)
        appendText(x, "  incomplete: which chain its CP link saw is not known\n");
    if (trace->unseen)
        appendText(x, "  incomplete: of what it wrote through CA links %u message%s not seen\n", trace->unseen,
                   trace->unseen == 1 ? " was" : "s were");
    if (trace->handOvers)
        appendText(x, "  incomplete: of what it handed over to other threads %u did not come\n", trace->handOvers);
    else if (trace->isIncomplete && !trace->lacksCause && !trace->lacksCpSource && !trace->unseen)
        appendText(x, "  incomplete: not all that belongs to it was kept\n");
}

/* Where the time of a chain went. */
static void writeTimes(traceWriter *x, const ebpfMonTraceChain *chain)
{
    const struct ebpfMonChain *c = &chain->chain;
    uint64_t slept = ebpfMonTraceChainGetSlept(chain), held = c->head.ktime - c->begin - c->wait;
    char name[24], thread[THREAD_SIZE];

    ebpfMonTextCopyBytes(thread, sizeof(thread), c->comm, EBPFMON_COMM_MAX - 1);
    appendText(x, "  %s on CPU %u: held the lock %.3f ms", thread, c->cpu, (double)held / 1e6);
    if (c->queueWait)
        appendText(x, ", after %.3f ms in the queue", (double)c->queueWait / 1e6);
    if (slept >= SHOW_NS)
        appendText(x, ", slept %.3f ms", (double)slept / 1e6);
    if (slept >= SHOW_NS && c->syscall >= 0) {
        ebpfMonSyscallName(c->syscall, name, sizeof(name));
        appendText(x, " (at most %.3f in %s)", (double)c->longest / 1e6, name);
    }
    if (c->cpuWait >= SHOW_NS)
        appendText(x, ", waited %.3f ms for a CPU", (double)c->cpuWait / 1e6);
    appendText(x, "\n");
}

size_t ebpfMonTraceTextWrite(ebpfMonTraceWalk *walk, ebpfMonTarget *t, const ebpfMonTrace *trace, uint64_t unixOffset,
                             char *buf, size_t size)
{
    static const ebpfMonTraceVisitor visitor = { .enterRecord = writeRecord, .skipChain = writeSkipped };
    const struct ebpfMonChain *c = &trace->first->chain;
    traceWriter x = { .t = t, .trace = trace, .buf = buf, .size = size, .begin = c->begin + c->wait + unixOffset };
    uint32_t total = ebpfMonTraceCountRecords(trace);

    buf[0] = 0;
    writeHeader(&x, unixOffset, total);
    ebpfMonTraceWalkRun(walk, trace, &visitor, &x);
    if (x.shown == RECORDS_MAX && total > x.shown)
        appendText(&x, "  ... %u more\n", total - x.shown);
    writeIncomplete(&x);
    for (const ebpfMonTraceChain *chain = trace->first; chain; chain = chain->next)
        writeTimes(&x, chain);
    return x.length;
}
