/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender of one signal, without a network: batches, refusals, back-off, giving up. Times are invented. */
#include <string.h>

#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "otlp/otlpSender.h"
#include "trace/span.h"
#include "otlpTest.h"

static ebpfMonOtlpConf conf;
static ebpfMonOtlpSender s;
static ebpfMonOtlpHttp *http;

static void onDone(void *arg, ebpfMonOtlpSignal signal, const ebpfMonHttpResult *result)
{
    testFail("there is nothing to send: no request");
}

static void addSpans(unsigned count)
{
    static ebpfMonSpan span = {.trace = {1}, .id = {2}, .kind = ebpfMonSpanInternal, .start = 1, .end = 2, .name = "x"};
    static uint8_t record[EBPFMON_SPAN_PACK_MAX];

    while (count--)
        ebpfMonRecordQueueAdd(s.queue, 0, record, ebpfMonSpanPack(&span, record));
}

static uint64_t lost(ebpfMonOtlpReason reason)
{
    double peak;

    return ebpfMonOtlpSenderGetCounts(&s, &peak)->lost[reason];
}

static void finish(ebpfMonHttpOutcome outcome, double now)
{
    static ebpfMonHttpResult result;

    result.outcome = outcome;
    strcpy(result.why, "no");
    ebpfMonOtlpHttpAbort(http, s.signal);
    ebpfMonOtlpSenderFinishRequest(&s, &result, &conf, 0, now);
}

static void testBatches(void)
{
    double peak;

    testDiag("batches");
    testOk1(ebpfMonOtlpSenderIsIdle(&s));
    addSpans(EBPFMON_OTLP_ITEMS + 10);
    testOk1(!ebpfMonOtlpSenderIsIdle(&s));
    ebpfMonOtlpSenderReadQueue(&s, &conf, 100);
    testOk(s.items == EBPFMON_OTLP_ITEMS, "%u items", s.items);
    ebpfMonOtlpSenderPostBatch(&s, http, 0, 100);
    testOk(s.inFlight && s.closed && isJson(s.text, s.len), "a full batch is sent at once: %u bytes", (unsigned)s.len);
    finish(ebpfMonHttpAccepted, 101);
    testOk1(s.counts.sent == EBPFMON_OTLP_ITEMS && !s.items);
    ebpfMonOtlpSenderReadQueue(&s, &conf, 101);
    ebpfMonOtlpSenderPostBatch(&s, http, 0, 101.5);
    testOk(s.items == 10 && !s.inFlight, "a small batch waits for more items");
    ebpfMonOtlpSenderPostBatch(&s, http, 0, 102);
    testOk(s.inFlight && isJson(s.text, s.len), "… but for a second at most");
    finish(ebpfMonHttpAccepted, 102);
    testOk1(ebpfMonOtlpSenderIsIdle(&s));
    ebpfMonOtlpSenderGetCounts(&s, &peak);
    testOk(peak > 0, "the largest load was %g %%", peak);
    testOk1(s.counts.sent == EBPFMON_OTLP_ITEMS + 10 && s.counts.requests == 2);
}

static void testRefused(void)
{
    testDiag("requests that are refused are sent again");
    addSpans(5);
    ebpfMonOtlpSenderReadQueue(&s, &conf, 200);
    ebpfMonOtlpSenderPostBatch(&s, http, 1, 200);
    finish(ebpfMonHttpRefused, 200);
    testOk1(lost(ebpfMonOtlpRefused) == 5 && s.out.trouble && !s.items);
    addSpans(7);
    ebpfMonOtlpSenderReadQueue(&s, &conf, 300);
    for (unsigned i = 0; i < 20; i++) {
        double now = 300 + i;

        ebpfMonOtlpSenderPostBatch(&s, http, 1, now);
        if (s.inFlight)
            finish(ebpfMonHttpAgain, now);
    }
    testOk(s.items == 7 && s.counts.requests > 4 && s.counts.requests < 10, "the waits grow: %u requests",
           (unsigned)s.counts.requests);
    s.out.retryAt = 0;
    ebpfMonOtlpSenderPostBatch(&s, http, 1, 300 + conf.giveUp);
    finish(ebpfMonHttpAgain, 300 + conf.giveUp);
    testOk1(lost(ebpfMonOtlpGaveUp) == 7 && !s.items);
}

static void testQueueFull(void)
{
    testDiag("a full queue");
    addSpans(EBPFMON_OTLP_QUEUE / 50);
    testOk(lost(ebpfMonOtlpQueueFull) > 0, "%u items are dropped", (unsigned)lost(ebpfMonOtlpQueueFull));
    ebpfMonOtlpSenderDiscard(&s, http);
    testOk1(ebpfMonOtlpSenderIsIdle(&s));
    testOk1(ebpfMonOtlpCountsSumLost(&s.counts) == 5 + 7 + EBPFMON_OTLP_QUEUE / 50);
}

MAIN(testOtlpSender)
{
    testPlan(0);
    eltc(0);
    clearEnvironment();
    if (ebpfMonOtlpConfSetCommand(&conf, "http://127.0.0.1:1", "traces", "", s.out.why, sizeof(s.out.why)))
        testAbort("%s", s.out.why);
    http = ebpfMonOtlpHttpNew(onDone, NULL);
    s.signal = ebpfMonOtlpTraces;
    s.queue = ebpfMonRecordQueueNew(EBPFMON_OTLP_QUEUE);
    testOk1(ebpfMonOtlpSenderAllocate(&s) == 0);
    ebpfMonOtlpSenderSetTarget(&s, http, &conf);
    testBatches();
    testRefused();
    testQueueFull();
    ebpfMonOtlpSenderFree(&s);
    ebpfMonOtlpHttpFree(http);
    ebpfMonRecordQueueFree(s.queue);
    return testDone();
}
