/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics, spans and Zipkin to a collector; the environment and the commands, as the monitor uses them. */
#include "otlpClient.h"

static void testMetricsAndSpans(void)
{
    ebpfMonSpan s = {.trace = {1}, .id = {2}, .kind = ebpfMonSpanInternal, .start = 1, .end = 2, .name = "x"};
    unsigned spans, metrics;

    testDiag("metrics and spans");
    begin(accepts, "metrics,traces");
    conf.interval = 0.2;
    ebpfMonOtlpConfigure(otlp, &conf);
    ebpfMonOtlpAddSpan(otlp, &s);
    put(0, 10); /* logs are not configured */
    WAIT(requests() >= 4);
    WAIT(readShown().sent > before.sent);
    stopOtlp(3);
    spans = readCount(&server.spans);
    metrics = readCount(&server.metrics);
    testOk(metrics >= 3 && spans == 1 && records() == 0, "%u times metrics, %u spans", metrics, spans);
    testOk1(readShown().lost == before.lost);
}

static void testZipkin(void)
{
    ebpfMonSpan s = {.trace = {1}, .id = {2}, .kind = ebpfMonSpanInternal, .start = 1, .end = 2, .name = "x"};
    unsigned spans, zipkins;
    char base[40], zipkin[60];

    testDiag("spans to Zipkin, beside OTLP");
    begin(accepts, "traces");
    snprintf(zipkin, sizeof(zipkin), "http://127.0.0.1:%d/api/v2/spans", server.port);
    testOk1(!ebpfMonOtlpWantsSpans(otlp));
    testOk1(ebpfMonOtlpSetZipkin(otlp, "nonsense") != 0 && ebpfMonOtlpSetZipkin(otlp, zipkin) == 0);
    testOk1(ebpfMonOtlpWantsSpans(otlp));
    ebpfMonOtlpAddSpan(otlp, &s);
    WAIT(requests() >= 1);
    WAIT(readShown().sent == before.sent + 1);
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", server.port);
    testOk1(ebpfMonOtlpSetCommand(otlp, base, "traces", "") == 0); /* Zipkin stays */
    ebpfMonOtlpAddSpan(otlp, &s);
    WAIT(readShown().sent == before.sent + 3);
    testOk1(ebpfMonOtlpSetZipkin(otlp, "off") == 0);
    ebpfMonOtlpAddSpan(otlp, &s);
    WAIT(readShown().sent == before.sent + 4);
    stopOtlp(3);
    spans = readCount(&server.spans);
    zipkins = readCount(&server.zipkins);
    testOk(spans == 2 && zipkins == 2 && readShown().lost == before.lost, "%u spans, %u to Zipkin", spans, zipkins);
}

static void testRoomForSpans(void)
{
    ebpfMonSpan s = {.trace = {1}, .id = {2}, .kind = ebpfMonSpanInternal, .start = 1, .end = 2, .name = "x"};
    unsigned added = 0;

    testDiag("a collector that takes nothing");
    begin(busy, "traces");
    conf.interval = 0.1;
    testOk1(ebpfMonOtlpHasRoom(otlp, 100000)); /* there is no endpoint */
    ebpfMonOtlpConfigure(otlp, &conf);
    testOk1(ebpfMonOtlpHasRoom(otlp, 1000) && !ebpfMonOtlpHasRoom(otlp, 10000));
    while (ebpfMonOtlpHasRoom(otlp, 1000) && added < 1000000) {
        ebpfMonOtlpAddSpan(otlp, &s);
        added++;
    }
    testOk(!ebpfMonOtlpHasRoom(otlp, 1000) && readShown().lost == before.lost,
           "after %u spans there is no room for a thousand more, and none is lost", added);
    stopOtlp(3);
}

static void testLateMetrics(void)
{
    testDiag("metrics that come late are not lost");
    begin(busy, "metrics");
    conf.interval = 0.1;
    ebpfMonOtlpConfigure(otlp, &conf);
    WAIT(requests() >= 2);
    setManner(accepts);
    WAIT(requests() >= 2);
    stopOtlp(3);
    testOk1(readShown().lost == before.lost);
}

static void exportPuts(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        ebpfMonPut p = otlpPut(i);

        ebpfMonOtlpAddPut(otlp, &p);
    }
}

static void testCommands(void)
{
    char base[40];

    testDiag("configured by the environment, by the command, and off");
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", server.port);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", base, 1);
    setenv("OTEL_METRICS_EXPORTER", "none", 1);
    setManner(accepts);
    renewOtlp();
    before = readShown();
    ebpfMonOtlpReadEnvironment(otlp);
    exportPuts(0, 5);
    WAIT(records() == 5);
    testOk1(ebpfMonOtlpSetCommand(otlp, base, "metrics", "") == 0);
    exportPuts(5, 10);
    testOk1(ebpfMonOtlpSetCommand(otlp, "off", "", "") == 0);
    WAIT(readShown().state == ebpfMonLogNone);
    ebpfMonOtlpReadEnvironment(otlp); /* the command has won */
    exportPuts(10, 15);
    testOk1(ebpfMonOtlpSetCommand(otlp, "nonsense", "logs", "") != 0);
    ebpfMonOtlpReport(otlp, 1);
    stopOtlp(3);
    testOk1(records() == 5);
    testOk1(ebpfMonOtlpSetCommand(otlp, base, "logs", "") == 0);
    stopOtlp(3);
    ebpfMonOtlpReadEnvironment(otlp); /* the monitor starts again after a failure */
    exportPuts(15, 20);
    WAIT(records() == 10);
    stopOtlp(3);
    clearEnvironment();
}

static void testReset(void)
{
    testDiag("the counts of losses are reset");
    begin(refuses, "logs");
    ebpfMonOtlpConfigure(otlp, &conf);
    put(0, 1);
    WAIT(readShown().lost > before.lost);
    ebpfMonOtlpResetLost(otlp);
    WAIT(readShown().lost == 0);
    put(1, 3);
    WAIT(readShown().lost == 2);
    stopOtlp(3);
}

MAIN(testOtlpSignals)
{
    testPlan(0);
    beginOtlpTest();
    testMetricsAndSpans();
    testZipkin();
    testLateMetrics();
    testRoomForSpans();
    testReset();
    testCommands();
    endOtlpTest();
    return testDone();
}
