/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends spans to a collector at a given rate, and measures how many arrive and how much CPU time that takes. spans.py
 * and the integration tests start it.
 *
 *     benchSpan URL otlp|zipkin SPANS-A-SECOND SECONDS
 *
 * It prints the id of the last trace, and: the numbers of spans made, accepted, and lost; the seconds until the last
 * one was accepted; the CPU time (µs) of maker and exporter for each span; the highest load of the queue (%).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <epicsThread.h>

#include "ebpfMon.h"
#include "model/published.h"
#include "otlp/otlp.h"
#include "probe/hist.h"
#include "trace/span.h"

#define CHAIN    10   /* spans */
#define DEADLINE 30.0 /* s */

static const ebpfMonModule module;
static ebpfMonOtlp *otlp;

/* As the monitor does (ebpfMonMain.cpp). Else Base begins the thread of errlog when the exporter complains, which has
 * no right to real-time priorities any more. */
__attribute__((section(".preinit_array"), used)) static void (*const giveUpRealTime)(void) = ebpfMonRealTimeGiveUp;

static double clockOf(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double processCpu(void)
{
    return clockOf(CLOCK_PROCESS_CPUTIME_ID);
}

/* Exports the spans of one chain, as the monitor does: a root record, and those that its forward links process. */
static void exportChain(uint8_t trace[EBPFMON_TRACE_ID])
{
    static ebpfMonSpan s;
    uint8_t root[EBPFMON_SPAN_ID];
    struct timespec t;
    uint64_t now;

    clock_gettime(CLOCK_REALTIME, &t);
    now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    ebpfMonSpanNewId(trace, EBPFMON_TRACE_ID);
    for (unsigned i = 0; i < CHAIN; i++) {
        memset(s.parent, 0, sizeof(s.parent));
        s.attributes = s.dropped = s.links = 0;
        memcpy(s.trace, trace, sizeof(s.trace));
        ebpfMonSpanNewId(s.id, sizeof(s.id));
        s.kind = ebpfMonSpanInternal;
        strcpy(s.service.name, "benchIoc");
        s.service.pid = 4711;
        strcpy(s.service.version, "7.0.8.1");
        s.end = now - i * 1000;
        s.start = now - 30000 + i * 1000;
        s.latency = s.end - s.start;
        snprintf(s.name, sizeof(s.name), "process BENCH:CALC%u", i);
        snprintf(s.root, sizeof(s.root), "%s", i ? "" : "BENCH:CALC0");
        ebpfMonSpanAddText(&s, "epics.record.name", s.name + strlen("process "));
        ebpfMonSpanAddText(&s, "epics.record.type", "calc");
        ebpfMonSpanAddText(&s, "epics.record.value", "42.125");
        if (i) {
            memcpy(s.parent, root, sizeof(root));
            ebpfMonSpanAddText(&s, "epics.link.field", "FLNK");
        } else {
            memcpy(root, s.id, sizeof(root));
            ebpfMonSpanAddText(&s, "epics.chain.cause", "scan .1 second");
            ebpfMonSpanAddInteger(&s, "epics.chain.records", CHAIN);
            ebpfMonSpanAddDouble(&s, "epics.chain.wait", 1.5);
        }
        ebpfMonOtlpAddSpan(otlp, &s);
    }
}

/* Sets the time of the group of chains, so that their metrics are sent. */
static void stampChains(void)
{
    epicsTimeGetCurrent(&ebpfMonPublishedLock()->time[ebpfMonGroupChains]);
    ebpfMonPublishedUnlock();
}

/* Publishes a histogram of the root record's latency. The trace is an exemplar of it. */
static void publishHistogram(void)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    ebpfMonChainRow *c = &published->chains.slowest[0];

    published->chains.slowestCount = 1;
    strcpy(c->root, "BENCH:CALC0");
    strcpy(c->ioc, "benchIoc");
    c->count = 1;
    c->mean = c->max = 30;
    c->hist[5] = 1;
    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        published->chains.histEdge[i] = ebpfMonHistOctaveEdge(i) / 1000;
    ebpfMonPublishedUnlock();
}

/* Returns the number of spans lost. Sets *sent, and *queue to its maximum so far. */
static uint64_t readCounts(double *queue, uint64_t *sent)
{
    ebpfMonOtlpValues values;

    ebpfMonModuleLock();
    values = *ebpfMonOtlpGetValues(otlp);
    ebpfMonModuleUnlock();
    *sent = values.sent;
    if (values.queue > *queue)
        *queue = values.queue;
    return values.lost;
}

int main(int argc, char **argv)
{
    double rate = argc == 5 ? atof(argv[3]) : 0, seconds = argc == 5 ? atof(argv[4]) : 0, begin, cpu, own, took;
    uint64_t made = 0, wanted = (uint64_t)(rate * seconds), gone, sent;
    double queue = 0, sentAt;
    uint8_t trace[EBPFMON_TRACE_ID];
    int zipkin = argc == 5 && strcmp(argv[2], "zipkin") == 0;

    if (!(rate > 0 && seconds > 0)) {
        fprintf(stderr, "usage: benchSpan URL otlp|zipkin SPANS-A-SECOND SECONDS\n");
        return 2;
    }
    otlp = ebpfMonOtlpNew(&module);
    if (!otlp)
        return 1;
    publishHistogram();
    if (zipkin ? ebpfMonOtlpSetZipkin(otlp, argv[1]) :
                 ebpfMonOtlpSetCommand(otlp, argv[1], "traces", ""))
        return 1;
    begin = clockOf(CLOCK_MONOTONIC);
    cpu = processCpu();
    own = clockOf(CLOCK_THREAD_CPUTIME_ID);
    while (made < wanted) {
        while (made < wanted && (double)made <= (clockOf(CLOCK_MONOTONIC) - begin) * rate) {
            exportChain(trace);
            made += CHAIN;
        }
        epicsThreadSleep(0.001);
        readCounts(&queue, &sent);
    }
    own = clockOf(CLOCK_THREAD_CPUTIME_ID) - own;
    do {
        epicsThreadSleep(0.02);
        gone = readCounts(&queue, &sent);
        sentAt = clockOf(CLOCK_MONOTONIC);
    } while (sent + gone < made && sentAt - begin < seconds + DEADLINE);
    took = sentAt - begin;
    cpu = processCpu() - cpu - own;
    if (!zipkin) /* the metrics at the end; the last chain is their exemplar */
        ebpfMonOtlpSetCommand(otlp, argv[1], "traces,metrics", "");
    exportChain(trace);
    stampChains();
    ebpfMonOtlpStop(otlp, 5);
    ebpfMonOtlpWaitStopped(otlp);
    printf("trace ");
    for (unsigned i = 0; i < EBPFMON_TRACE_ID; i++)
        printf("%02x", trace[i]);
    printf("\n%" PRIu64 " made, %" PRIu64 " accepted, %" PRIu64 " lost, %.3f s, %.2f us to make, %.2f us to export, "
           "queue %.1f %%\n", made, sent, gone, took, 1e6 * own / (double)made, 1e6 * cpu / (double)made, queue);
    return 0;
}
