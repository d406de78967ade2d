/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "ioc/baseLayout.h"
#include "put/putWriter.h"
#include "put/valueText.h"
#include "trace/traceWords.h"

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
        ebpfMonThreadJobDescribe(t, comm, !!(c->flags & EBPFMON_CHAIN_MAIN), t->cat->rec[c->rootSlot].addr, buf, size);
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
