/* SPDX-License-Identifier: BSD-3-Clause */
/* OTLP's JSON: log records, requests, answers. testSpan.c has the spans, testOtlpMetrics.c the metrics. */
#include <math.h>
#include <time.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "otlp/otlpJson.h"
#include "otlpTest.h"

#define LINE "2026-11-15 07:28:03.123457 P7 a -> 7 by alice@opi1"

static ebpfMonOtlpConf conf;
static char why[256];
static ebpfMonJson json;
static char text[400000];

static void expect(const char *what, const char *wanted, size_t len)
{
    testOk(len == strlen(wanted) && memcmp(text, wanted, len) == 0, "%s", what);
    if (len != strlen(wanted) || memcmp(text, wanted, len) != 0)
        testDiag("is     %.*s\nwanted %s", (int)len, text, wanted);
}

static void testLogRecord(void)
{
    ebpfMonPut p = otlpPut(7);
    size_t len;

    testDiag("a log record");
    len = ebpfMonOtlpWriteLogRecord(&json, &p, 9, text, sizeof(text));
    expect("a put",
        "{\"timeUnixNano\":\"1794727683123456789\",\"observedTimeUnixNano\":\"9\",\"severityNumber\":9,"
        "\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"" LINE "\"},\"eventName\":\"epics.put\",\"attributes\":["
        S("epics.pv", "P7") "," S("epics.ioc", "vac1") "," S("epics.value", "7") ","
        "{\"key\":\"epics.value_number\",\"value\":{\"doubleValue\":7}}," S("epics.value_old", "a") ","
        S("epics.put.through", "CA") "," S("epics.put.result", "ok") "," S("epics.put.seen", "inside") ","
        S("user.name", "alice") "," S("client.address", "10.0.0.5") "," I("client.port", "40312") "]}", len);
    p.result = ebpfMonPutDenied;
    len = ebpfMonOtlpWriteLogRecord(&json, &p, 9, text, sizeof(text) - 1);
    text[len] = 0;
    testOk1(strstr(text, "\"severityNumber\":13,\"severityText\":\"WARN\"") != NULL);
    p.unexpected = 1;
    strcpy(p.rule, "night");
    p.peerPid = 77;
    p.peerUid = 0;
    strcpy(p.realUser, "root");
    strcpy(p.command, "caput");
    strcpy(p.container, "0123456789ab");
    strcpy(p.link, "A.FLNK");
    strcpy(p.root, "A");
    strcpy(p.cause, "scan 1 second");
    strcpy(p.after, "6.5");
    p.number = NAN;
    len = ebpfMonOtlpWriteLogRecord(&json, &p, 9, text, sizeof(text) - 1);
    text[len] = 0;
    testOk1(strstr(text, "\"severityNumber\":17,\"severityText\":\"ERROR\"") != NULL);
    testOk1(strstr(text, "{\"key\":\"epics.put.unexpected\",\"value\":{\"boolValue\":true}},"
                   S("epics.put.rule", "night")) != NULL);
    testOk1(strstr(text, I("process.pid", "77") "," I("process.real_user.id", "0") ","
                   S("process.real_user.name", "root") "," S("process.command", "caput") ","
                   S("container.id", "0123456789ab")) != NULL);
    testOk1(strstr(text, S("epics.put.link", "A.FLNK") "," S("epics.put.root", "A") ","
                   S("epics.put.cause", "scan 1 second")) != NULL);
    testOk1(strstr(text, S("epics.value_after", "6.5")) && strstr(text, "{\"doubleValue\":\"NaN\"}"));
    testOk1(isJson(text, len));
    for (size_t size = 0; size <= len; size += 7)
        if (ebpfMonOtlpWriteLogRecord(&json, &p, 9, text, size))
            testFail("%u bytes are enough?", (unsigned)size);
    memset(p.val, 0xff, sizeof(p.val) - 1);
    memset(p.old, 1, sizeof(p.old) - 1);
    memset(p.after, '"', sizeof(p.after) - 1);
    len = ebpfMonOtlpWriteLogRecord(&json, &p, 9, text, sizeof(text));
    testOk1(isJson(text, len));
}

static void testHeads(void)
{
    size_t len, head;

    testDiag("the resource of the log records");
    memset(&conf, 0, sizeof(conf));
    strcpy(conf.service, "ebpfMon");
    ebpfMonOtlpPairsParse(&conf.resource, "host.name=h,service.instance.id=i,site=\"lab\",service.name=no");
    len = ebpfMonOtlpWriteHead(&json, ebpfMonOtlpLogs, &conf, text, sizeof(text));
    expect("logs", "{\"resourceLogs\":[{\"resource\":{\"attributes\":[" S("service.name", "ebpfMon") ","
           S("service.version", EBPFMON_VERSION) "," S("service.instance.id", "i") "," S("host.name", "h") ","
           S("site", "\\\"lab\\\"") "]},\"scopeLogs\":[{\"scope\":{\"name\":\"ebpfMon\",\"version\":\"" EBPFMON_VERSION
           "\"},\"logRecords\":[", len);
    for (ebpfMonOtlpSignal s = 0; s < ebpfMonOtlpSignals; s++) {
        head = ebpfMonOtlpWriteHead(&json, s, &conf, text, sizeof(text));
        if (s == ebpfMonOtlpTraces) /* spans stand in a service */
            head += ebpfMonOtlpWriteServiceHead(&json, &(ebpfMonSpanService){""}, &conf, text + head,
                                                sizeof(text) - head);
        strcpy(text + head, ebpfMonOtlpGetTail(s));
        testOk(isJson(text, strlen(text)), "no %s", ebpfMonOtlpSignalGetName(s));
        testOk1(ebpfMonOtlpWriteHead(&json, s, &conf, text, 0) == 0);
    }
}

static void testAnswers(void)
{
    static const char partial[] =
        "{\"partialSuccess\":{\"rejectedLogRecords\":\"3\",\"errorMessage\":\"too old\"}}";
    static const char escape[] = "{\"errorMessage\":\"a\\u001b[2J\xc3\xa9\\u000a\"}";
    char garbage[64];

    testDiag("answers of a collector");
    testOk1(ebpfMonOtlpReadRejected(partial, strlen(partial), why, sizeof(why)) == 3 && strcmp(why, "too old") == 0);
    testOk1(ebpfMonOtlpReadRejected("{\"partialSuccess\":{\"rejectedSpans\":2}}", 38, why, sizeof(why)) == 2 &&
            !why[0]);
    testOk1(ebpfMonOtlpReadRejected("{\"partialSuccess\":null}", 23, why, sizeof(why)) == 0);
    testOk1(ebpfMonOtlpReadRejected("{\"rejectedSpans\":-2}", 20, why, sizeof(why)) == 0);
    ebpfMonOtlpReadRejected(escape, strlen(escape), why, sizeof(why));
    testOk(strcmp(why, "a\\x1b[2J\xc3\xa9\\x0a") == 0, "the message has no escape sequences: %s", why);
    testOk1(ebpfMonOtlpReadRejected("", 0, why, sizeof(why)) == 0);
    for (size_t n = 0; n < strlen(partial); n++)
        if (ebpfMonOtlpReadRejected(partial, n, why, sizeof(why)))
            testFail("a part of an answer");
    memset(garbage, 0xff, sizeof(garbage));
    testOk1(ebpfMonOtlpReadRejected(garbage, sizeof(garbage), why, sizeof(why)) == 0);
}

MAIN(testOtlpJson)
{
    testPlan(0);
    setenv("TZ", "UTC", 1);
    tzset();
    testLogRecord();
    testHeads();
    testAnswers();
    ebpfMonJsonFree(&json);
    return testDone();
}
