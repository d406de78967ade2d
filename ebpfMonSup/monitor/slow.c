/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alarm.h>
#include <alarmString.h>
#include <epicsStdio.h>

#include "model/board.h"
#include "model/chainTree.h"
#include "monitor/decode.h"
#include "monitor/slow.h"
#include "monitor/traceShell.h"
#include "monitor/value.h"
#include "target/layout.h"

#define CHAIN_RECORDS 2048 /* of one chain that are kept; the text holds fewer */
#define TEXT_RECORDS  100
#define EDGES         (4 * CHAIN_RECORDS)
#define INDENT        20   /* levels that are moved to the right */
#define OPEN_CHAINS   8    /* chains of different threads can arrive part by part at a time */

typedef struct {
    uint32_t tid, rootSlot, count;
    uint64_t end;
    struct ebpfMonChainRec rec[CHAIN_RECORDS];
} chain;

static chain open[OPEN_CHAINS];
static unsigned nextOpen;

static int byTime(const void *a, const void *b)
{
    const struct ebpfMonChainRec *x = a, *y = b;
    uint64_t tx = (x->time & 0xffffffff) * 1000000000u + (x->time >> 32);
    uint64_t ty = (y->time & 0xffffffff) * 1000000000u + (y->time >> 32);

    return tx < ty ? -1 : tx > ty;
}

static int64_t stampNs(uint64_t time)
{
    return (int64_t)((time & 0xffffffff) * 1000000000u + (time >> 32));
}

static void add(char *buf, size_t size, size_t *at, const char *fmt, ...) __attribute__((format(__printf__, 4, 5)));

static void add(char *buf, size_t size, size_t *at, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (*at + 1 >= size)
        return;
    va_start(ap, fmt);
    n = vsnprintf(buf + *at, size - *at, fmt, ap);
    va_end(ap);
    *at = n > 0 && (size_t)n < size - *at ? *at + (size_t)n : size - 1;
}

static int whenOf(const ebpfMonField *link)
{
    return link->type == ebpfMonDbfInlink ? ebpfMonTreeBefore :
           strcmp(link->name, "FLNK") == 0 ? ebpfMonTreeAfter : ebpfMonTreeEither;
}

/* Edges between the chain's records, whose nodes have the same numbers. */
static uint32_t links(const ebpfMonTarget *t, const chain *c, ebpfMonTreeEdge *edge)
{
    static struct { uint32_t index, node; } place[2 * CHAIN_RECORDS]; /* open addressing; node + 1, 0: free */
    uint32_t n = 0;

    memset(place, 0, sizeof(place));
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t index = c->rec[i].slot - t->slot, at = index * 2654435761u % (2 * CHAIN_RECORDS);

        while (place[at].node)
            at = (at + 1) % (2 * CHAIN_RECORDS);
        place[at].index = index;
        place[at].node = i + 1;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t index = c->rec[i].slot - t->slot;
        const ebpfMonRecord *rec = index < t->cat->count ? &t->cat->rec[index] : NULL;

        for (uint32_t k = 0; rec && k < rec->toCount && n < EDGES; k++) {
            uint32_t at = rec->to[k] * 2654435761u % (2 * CHAIN_RECORDS), field = rec->to[rec->toCount + k];

            while (place[at].node && place[at].index != rec->to[k])
                at = (at + 1) % (2 * CHAIN_RECORDS);
            if (place[at].node)
                edge[n++] = (ebpfMonTreeEdge){ .from = i, .to = place[at].node - 1, .via = field,
                                               .when = whenOf(&t->cat->field[field]) };
        }
    }
    return n;
}

static void line(ebpfMonTarget *t, const struct ebpfMonChainRec *r, const ebpfMonTreeNode *node, int64_t begin,
                 char *text, size_t size, size_t *at)
{
    uint32_t index = r->slot - t->slot;
    const ebpfMonRecType *rt = &t->cat->rtype[t->cat->rec[index].rtype];
    char value[80] = "";

    if (rt->valField >= 0) {
        const ebpfMonField *f = &t->cat->field[rt->valField];
        ebpfMonValue v = { .data = r->val, .len = 16, .type = f->type, .size = 16, .count = 1 };

        if (!f->arrayCount && f->type <= ebpfMonDbfDevice && f->special != LAYOUT_SPC_DBADDR)
            ebpfMonValueText(t, f, t->cat->rec[index].addr, &v, value, sizeof(value));
    }
    add(text, size, at, "  %10.1f us %*s%s%s%s (%s) = %s", (double)(stampNs(r->time) - begin) / 1000,
        (int)(node->depth < INDENT ? 2 * node->depth : 2 * INDENT) + 1, "",
        node->parent != EBPFMON_NO_PARENT ? t->cat->field[node->via].name : node->depth ? "?" : "",
        node->depth ? " > " : "", ebpfMonCatalogueName(t->cat, index), rt->name, value);
    if (r->sevr && r->sevr < ALARM_NSEV && r->stat < ALARM_NSTATUS)
        add(text, size, at, "  %s %s", epicsAlarmSeverityStrings[r->sevr], epicsAlarmConditionStrings[r->stat]);
    add(text, size, at, "\n");
}

/* The chain as a tree: each record below the one that made it process, with the link that did. */
static void tell(ebpfMonTarget *t, const struct ebpfMonChainEvent *ev, chain *c)
{
    static char text[EBPFMON_SLOW_SIZE];
    static ebpfMonTreeNode node[CHAIN_RECORDS];
    static ebpfMonTreeEdge edge[EDGES];
    static uint32_t order[CHAIN_RECORDS];
    epicsTimeStamp end = ebpfMonWallTime(ev->head.ktime);
    int64_t endNs = (int64_t)end.secPastEpoch * 1000000000 + end.nsec;
    int64_t beginNs = endNs - (int64_t)(ev->head.ktime - ev->begin - ev->wait);
    uint32_t root = 0, shown = 0;
    int tracing = ebpfMonTraceOn(), traced = 0;
    size_t at = 0, keep;
    char when[64];
    ebpfMonBoard *board;

    qsort(c->rec, c->count, sizeof(c->rec[0]), byTime);
    for (uint32_t i = 0; i < c->count; i++) {
        node[i].time = stampNs(c->rec[i].time);
        if (c->rec[i].slot == ev->rootSlot)
            root = i;
    }
    if (ebpfMonTree(node, c->count, root, edge, links(t, c, edge), order))
        return;
    epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S.%06f", &end);
    add(text, sizeof(text), &at, "%s %s: %s %.1f us, waited %.1f us for the lock, %u record%s\n", when, t->name,
        ebpfMonCatalogueName(t->cat, ev->rootSlot - t->slot), (double)(ev->head.ktime - ev->begin - ev->wait) / 1000,
        (double)ev->wait / 1000, ev->total, ev->total == 1 ? "" : "s");
    for (uint32_t k = 0; tracing && k < c->count && !traced; k++)
        if (c->rec[k].slot - t->slot < t->cat->count)
            traced = ebpfMonTraceMatches(ebpfMonCatalogueName(t->cat, c->rec[k].slot - t->slot));
    for (uint32_t k = 0; k < c->count && shown < TEXT_RECORDS; k++)
        if (c->rec[order[k]].slot - t->slot < t->cat->count) {
            line(t, &c->rec[order[k]], &node[order[k]], beginNs, text, sizeof(text), &at);
            shown++;
        }
    if (shown < ev->total)
        add(text, sizeof(text), &at, "  … %u more\n", ev->total - shown);

    if (traced)
        ebpfMonTracePrint(text);
    board = ebpfMonBoardLock();
    /* newest first; what falls off the end falls off at a line */
    keep = strlen(board->slow);
    if (at + keep >= sizeof(board->slow)) {
        keep = sizeof(board->slow) - 1 - at;
        while (keep > 0 && board->slow[keep - 1] != '\n')
            keep--;
    }
    memmove(board->slow + at, board->slow, keep);
    memcpy(board->slow, text, at);
    board->slow[at + keep] = 0;
    board->slowCount++;
    board->time[ebpfMonGroupSlow] = end;
    ebpfMonBoardUnlock();
    ebpfMonBoardChanged(ebpfMonGroupSlow);
}

void ebpfMonSlowPart(ebpfMonTarget *t, const struct ebpfMonChainEvent *ev, size_t size)
{
    chain *c = NULL;

    if (size < sizeof(*ev) || ev->count > EBPFMON_CHUNK || t->slot == UINT32_MAX || !t->cat ||
        ev->rootSlot - t->slot >= t->cat->count)
        return;
    for (unsigned i = 0; i < OPEN_CHAINS; i++)
        if (open[i].tid == ev->head.tid && open[i].end == ev->head.ktime)
            c = &open[i];
    if (!c) {
        if (ev->part != 0)
            return; /* its beginning was lost, and counted as such */
        c = &open[nextOpen++ % OPEN_CHAINS];
        c->tid = ev->head.tid;
        c->end = ev->head.ktime;
        c->count = 0;
    }
    for (uint32_t i = 0; i < ev->count && c->count < CHAIN_RECORDS; i++)
        c->rec[c->count++] = ev->rec[i];
    if (ev->last) {
        tell(t, ev, c);
        c->end = 0;
    }
}
