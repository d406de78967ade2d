/* SPDX-License-Identifier: BSD-3-Clause */
/* OTLP: what the environment says, the JSON, and that nothing is lost silently, whatever a collector does. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>
#include <yajl_parse.h>

#include "export/export.h"
#include "export/otlp/otlp.h"
#include "export/otlp/otlpJson.h"
#include "model/published.h"
#include "model/logOps.h"

#define DEADLINE 20.0 /* s */

static ebpfMonOtlpConf conf;
static char why[256], text[400000];

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- the environment --- */

static void testPairs(void)
{
    ebpfMonOtlpPairs p;
    const char *key, *value;
    char longer[2100];

    testDiag("lists of pairs");
    testOk1(ebpfMonOtlpPairsParse(&p, " a = b ,,c=d%2Ce%20f%3dg, h=") == 0 && p.pairs == 3);
    key = ebpfMonOtlpPairNext(&p, NULL, &value);
    testOk1(key && strcmp(key, "a") == 0 && strcmp(value, "b") == 0);
    key = ebpfMonOtlpPairNext(&p, key, &value);
    testOk1(key && strcmp(key, "c") == 0 && strcmp(value, "d,e f=g") == 0);
    key = ebpfMonOtlpPairNext(&p, key, &value);
    testOk1(key && strcmp(key, "h") == 0 && strcmp(value, "") == 0);
    testOk1(!ebpfMonOtlpPairNext(&p, key, &value));
    testOk1(ebpfMonOtlpPairsParse(&p, "") == 0 && !ebpfMonOtlpPairNext(&p, NULL, &value));
    testOk1(ebpfMonOtlpPairsParse(&p, "a=x=y") == 0 && ebpfMonOtlpPairNext(&p, NULL, &value) &&
            strcmp(value, "x=y") == 0);
    testOk1(ebpfMonOtlpPairsParse(&p, "a") != 0 && ebpfMonOtlpPairsParse(&p, "=b") != 0);
    testOk1(ebpfMonOtlpPairsParse(&p, "a=%4") != 0 && ebpfMonOtlpPairsParse(&p, "a=%zz") != 0);
    testOk(ebpfMonOtlpPairsParse(&p, "a=b%0d%0aEvil: 1") != 0, "no line feed in a header");
    for (size_t size = 2040; size <= 2060; size++) {
        memset(longer, 'x', size);
        memcpy(longer, "k=", 2);
        longer[size] = 0;
        if (ebpfMonOtlpPairsParse(&p, longer) == 0 && p.len > sizeof(p.text))
            testFail("too long");
    }
    testOk1(ebpfMonOtlpPairsParse(&p, longer) != 0);
}

static void clearEnvironment(void)
{
    static const char *const names[] = {
        "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
        "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "OTEL_SERVICE_NAME",
        "OTEL_RESOURCE_ATTRIBUTES", "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SDK_DISABLED",
        "OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_ZIPKIN_ENDPOINT",
        "OTEL_EXPORTER_ZIPKIN_TIMEOUT",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

static int fromEnvironment(void)
{
    return ebpfMonOtlpConfEnvironment(&conf, why, sizeof(why));
}

static const char *url(ebpfMonOtlpSignal signal)
{
    return conf.target[signal].url;
}

static void testEnvironment(void)
{
    const char *value;

    testDiag("the environment");
    clearEnvironment();
    testOk1(fromEnvironment() == 0);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318", 1);
    testOk1(fromEnvironment() == 1);
    testOk1(strcmp(url(ebpfMonOtlpLogs), "http://h:4318/v1/logs") == 0);
    testOk1(strcmp(url(ebpfMonOtlpMetrics), "http://h:4318/v1/metrics") == 0);
    testOk1(strcmp(url(ebpfMonOtlpTraces), "http://h:4318/v1/traces") == 0);
    testOk1(conf.target[ebpfMonOtlpLogs].timeout == 10 && conf.interval == 10 && strcmp(conf.service, "ebpfMon") == 0);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://h/base/", 1);
    setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://l:1/as/it/is", 1);
    setenv("OTEL_METRICS_EXPORTER", "none", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20abc,X-Org=7", 1);
    setenv("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "L=1", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2500", 1);
    setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "100", 1);
    setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=one,site=lab", 1);
    testOk1(fromEnvironment() == 1);
    testOk1(strcmp(url(ebpfMonOtlpLogs), "http://l:1/as/it/is") == 0);
    testOk1(strcmp(url(ebpfMonOtlpTraces), "https://h/base/v1/traces") == 0);
    testOk1(!url(ebpfMonOtlpMetrics)[0]);
    testOk1(conf.target[ebpfMonOtlpLogs].headers.pairs == 1 && conf.target[ebpfMonOtlpTraces].headers.pairs == 2);
    testOk1(ebpfMonOtlpPairNext(&conf.target[ebpfMonOtlpTraces].headers, NULL, &value) &&
            strcmp(value, "Basic abc") == 0);
    testOk1(conf.target[ebpfMonOtlpLogs].timeout == 2.5 && conf.target[ebpfMonOtlpMetrics].timeout == 0.1);
    testOk1(strcmp(conf.service, "one") == 0);
    setenv("OTEL_SERVICE_NAME", "two", 1);
    testOk1(fromEnvironment() == 1 && strcmp(conf.service, "two") == 0);
    setenv("OTEL_SDK_DISABLED", "True", 1);
    testOk1(fromEnvironment() == 0);
    unsetenv("OTEL_SDK_DISABLED");
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    testOk(fromEnvironment() < 0 && strstr(why, "only http/json") && !url(ebpfMonOtlpTraces)[0], "%s", why);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", 1);
    testOk1(fromEnvironment() == 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", 1);
    testOk(fromEnvironment() < 0 && strstr(why, "OTEL_EXPORTER_OTLP_TIMEOUT"), "%s", why);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1000", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a b=c", 1);
    testOk(fromEnvironment() < 0 && strstr(why, "OTEL_EXPORTER_OTLP_HEADERS"), "%s", why);
    clearEnvironment();
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://h:4318", 1);
    testOk(fromEnvironment() < 0 && strstr(why, "ftp://h:4318"), "%s", why);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense", 1);
    testOk(fromEnvironment() < 0, "%s", why);
    clearEnvironment();
    setenv("OTEL_EXPORTER_ZIPKIN_ENDPOINT", "http://z:9411/api/v2/spans", 1);
    setenv("OTEL_EXPORTER_ZIPKIN_TIMEOUT", "700", 1);
    testOk1(fromEnvironment() == 1 && strcmp(url(ebpfMonOtlpZipkin), "http://z:9411/api/v2/spans") == 0 &&
            conf.target[ebpfMonOtlpZipkin].timeout == 0.7 && !url(ebpfMonOtlpTraces)[0]);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", 1);
    setenv("OTEL_TRACES_EXPORTER", "zipkin", 1);
    testOk1(fromEnvironment() == 1 && url(ebpfMonOtlpZipkin)[0] && !url(ebpfMonOtlpTraces)[0] &&
            url(ebpfMonOtlpLogs)[0]);
    setenv("OTEL_TRACES_EXPORTER", "otlp,zipkin", 1);
    testOk1(fromEnvironment() == 1 && url(ebpfMonOtlpZipkin)[0] && url(ebpfMonOtlpTraces)[0]);
    setenv("OTEL_TRACES_EXPORTER", "otlp", 1);
    testOk1(fromEnvironment() == 1 && !url(ebpfMonOtlpZipkin)[0] && url(ebpfMonOtlpTraces)[0]);
    setenv("OTEL_TRACES_EXPORTER", "none", 1);
    testOk1(fromEnvironment() == 1 && !url(ebpfMonOtlpZipkin)[0] && !url(ebpfMonOtlpTraces)[0]);
    clearEnvironment();

    testDiag("the command");
    testOk1(ebpfMonOtlpConfCommand(&conf, "http://h:1/", "logs, metrics", "A=b", why, sizeof(why)) == 0);
    testOk1(strcmp(url(ebpfMonOtlpLogs), "http://h:1/v1/logs") == 0 && url(ebpfMonOtlpMetrics)[0] &&
            !url(ebpfMonOtlpTraces)[0] && conf.target[ebpfMonOtlpLogs].headers.pairs == 1);
    testOk(ebpfMonOtlpConfCommand(&conf, "http://h", "logs,puts", "", why, sizeof(why)) < 0, "%s", why);
    testOk(ebpfMonOtlpConfCommand(&conf, "http://h", "logs", "nonsense", why, sizeof(why)) < 0, "%s", why);
    testOk1(ebpfMonOtlpConfCommand(&conf, "off", "logs", "", why, sizeof(why)) == 0 && !url(ebpfMonOtlpLogs)[0]);
}

/* --- the JSON --- */

static ebpfMonPut somePut(unsigned number)
{
    ebpfMonPut p = {
        .count = 1, .oldCount = 1, .hasOld = 1, .isNumber = 1, .number = number, .through = ebpfMonByCa,
        .result = ebpfMonPutOk, .seen = EBPFMON_SEEN_INSIDE,
    };

    p.time.secPastEpoch = 1163575683u; /* 2026-11-15 07:28:03 UTC */
    p.time.nsec = 123456789;
    strcpy(p.ioc, "vac1");
    sprintf(p.pv, "P%u", number);
    sprintf(p.val, "%u", number);
    strcpy(p.old, "a");
    strcpy(p.user, "alice");
    strcpy(p.who, "alice@opi1");
    strcpy(p.peer, "10.0.0.5:40312");
    return p;
}

static int isJson(const char *json, size_t len)
{
    yajl_handle parser = yajl_alloc(NULL, NULL, NULL);
    int ok = len && yajl_parse(parser, (const unsigned char *)json, len) == yajl_status_ok &&
             yajl_complete_parse(parser) == yajl_status_ok;

    yajl_free(parser);
    return ok;
}

static void expect(const char *what, const char *wanted, size_t len)
{
    testOk(len == strlen(wanted) && memcmp(text, wanted, len) == 0, "%s", what);
    if (len != strlen(wanted) || memcmp(text, wanted, len) != 0)
        testDiag("is     %.*s\nwanted %s", (int)len, text, wanted);
}

#define S(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define I(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define LINE "2026-11-15 07:28:03.123457 P7 a \xe2\x86\x92 7 by alice@opi1"

static void testJson(void)
{
    ebpfMonPut p = somePut(7);
    size_t len, head;

    testDiag("a log record");
    len = ebpfMonOtlpLogRecord(&p, 9, text, sizeof(text));
    expect("a put",
        "{\"timeUnixNano\":\"1794727683123456789\",\"observedTimeUnixNano\":\"9\",\"severityNumber\":9,"
        "\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"" LINE "\"},\"eventName\":\"epics.put\",\"attributes\":["
        S("epics.pv", "P7") "," S("epics.ioc", "vac1") "," S("epics.value", "7") ","
        "{\"key\":\"epics.value_number\",\"value\":{\"doubleValue\":7}}," S("epics.value_old", "a") ","
        S("epics.put.through", "CA") "," S("epics.put.result", "ok") "," S("epics.put.seen", "inside") ","
        S("user.name", "alice") "," S("client.address", "10.0.0.5") "," I("client.port", "40312") "]}", len);
    p.result = ebpfMonPutDenied;
    len = ebpfMonOtlpLogRecord(&p, 9, text, sizeof(text) - 1);
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
    len = ebpfMonOtlpLogRecord(&p, 9, text, sizeof(text) - 1);
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
        if (ebpfMonOtlpLogRecord(&p, 9, text, size))
            testFail("%u bytes are enough?", (unsigned)size);
    memset(p.val, 0xff, sizeof(p.val) - 1);
    memset(p.old, 1, sizeof(p.old) - 1);
    memset(p.after, '"', sizeof(p.after) - 1);
    len = ebpfMonOtlpLogRecord(&p, 9, text, sizeof(text));
    testOk1(isJson(text, len));

    testDiag("its surroundings");
    memset(&conf, 0, sizeof(conf));
    strcpy(conf.service, "ebpfMon");
    ebpfMonOtlpPairsParse(&conf.resource, "host.name=h,service.instance.id=i,site=\"lab\",service.name=no");
    len = ebpfMonOtlpHead(ebpfMonOtlpLogs, &conf, text, sizeof(text));
    expect("logs", "{\"resourceLogs\":[{\"resource\":{\"attributes\":[" S("service.name", "ebpfMon") ","
           S("service.version", EBPFMON_VERSION) "," S("service.instance.id", "i") "," S("host.name", "h") ","
           S("site", "\\\"lab\\\"") "]},\"scopeLogs\":[{\"scope\":{\"name\":\"ebpfMon\",\"version\":\"" EBPFMON_VERSION
           "\"},\"logRecords\":[", len);
    for (ebpfMonOtlpSignal s = 0; s < ebpfMonOtlpSignals; s++) {
        head = ebpfMonOtlpHead(s, &conf, text, sizeof(text));
        if (s == ebpfMonOtlpTraces) /* spans stand in a service */
            head += ebpfMonOtlpServiceHead(&(ebpfMonSpanService){""}, &conf, text + head, sizeof(text) - head);
        strcpy(text + head, ebpfMonOtlpTail(s));
        testOk(isJson(text, strlen(text)), "no %s", ebpfMonOtlpSignalName(s));
        testOk1(ebpfMonOtlpHead(s, &conf, text, 0) == 0);
    }
}

/* The number after a text. */
static uint64_t after(const char *from, const char *key)
{
    const char *at = from ? strstr(from, key) : NULL;

    return at ? strtoull(at + strlen(key), NULL, 10) : UINT64_MAX;
}

#define EXEMPLAR "\"exemplars\":[{\"timeUnixNano\":8000,\"filteredAttributes\":[],\"asDouble\":7e-06," \
    "\"traceId\":\"ab000000000000000000000000000000\",\"spanId\":\"cd00000000000000\"}]"

static void testMetrics(void)
{
    static ebpfMonOtlpNumbers n;
    static ebpfMonOtlpSinces since;
    static ebpfMonExemplars exemplars;
    ebpfMonSpan chain = {.trace = {0xab}, .id = {0xcd}, .start = 1000, .end = 8000, .latency = 7000,
                         .root = "R", .service = {"vac1"}};
    const char *root;
    unsigned points;
    size_t len;

    testDiag("metrics");
    n.now = 1000;
    n.counted = 8000;
    n.putIocs = 2;
    strcpy(n.putIoc[0].name, "vac1");
    n.putIoc[0].puts = 5;
    strcpy(n.putIoc[1].name, "10.0.0.1:5064");
    n.putIoc[1].denied = 1;
    n.roots = 2;
    n.chain[0] = n.chain[1] = (ebpfMonChainRow){.count = 4, .mean = 2.5, .max = 9, .ioc = "vac1", .hist = {1, 3}};
    strcpy(n.chain[0].root, "R");
    strcpy(n.chain[1].root, "Q");
    ebpfMonExemplarAdd(&exemplars, &chain);
    n.losses = 1;
    strcpy(n.lost[0].reason, "ring full");
    n.lost[0].count = 3;
    n.iocs = 1;
    strcpy(n.ioc[0].name, "vac1");
    n.ioc[0].records = 12;
    n.ioc[0].cost = 0.25;
    n.ioc[0].processings = 77;
    n.cpu = NAN;
    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        n.edge[i] = i * 0.5;
    n.hist[0] = 2;
    n.hist[EBPFMON_HIST_MAX - 1] = 4;
    len = ebpfMonOtlpMetricItems(&n, &exemplars, &since, text + 1, sizeof(text) - 3, &points);
    text[0] = '[';
    strcpy(text + 1 + len, "]");
    testOk(isJson(text, len + 2) && points == 15, "%u points", points);
    testOk1(strstr(text, "{\"name\":\"epics.puts\",\"unit\":\"{put}\",\"description\":\"Puts that passed the filter\","
                   "\"sum\":{\"aggregationTemporality\":2,\"isMonotonic\":true,\"dataPoints\":[{"
                   "\"startTimeUnixNano\":\"1000\",\"timeUnixNano\":\"1000\",\"attributes\":[" S("epics.ioc", "vac1")
                   "],\"asInt\":5},{\"startTimeUnixNano\":\"1000\",\"timeUnixNano\":\"1000\",\"attributes\":["
                   S("epics.ioc", "10.0.0.1:5064") "],\"asInt\":0}]}}") != NULL);
    testOk1(strstr(text, "\"attributes\":[" S("epics.ioc", "vac1") "],\"asInt\":77") != NULL);
    root = strstr(text, "\"epics.root.latency\"");
    testOk1(root && strstr(root, "\"attributes\":[" S("epics.ioc", "vac1") "," S("epics.record.name", "R")
                           "],\"count\":4,\"bucketCounts\":[1,3,0,"));
    testOk1(root && strstr(root, EXEMPLAR) && !strstr(strstr(root, S("epics.record.name", "Q")), EXEMPLAR));
    testOk1(strstr(root, "\"sum\":1e-05,\"max\":9e-06") != NULL);
    testOk(strstr(text, EXEMPLAR) < root, "all chains have the slowest one");
    testOk1(strstr(text, "\"attributes\":[" S("ebpfmon.reason", "ring full") "],\"asInt\":3") != NULL);
    testOk1(strstr(text, "\"attributes\":[" S("epics.ioc", "vac1") "],\"asInt\":12") != NULL);
    testOk1(strstr(text, "\"attributes\":[" S("epics.ioc", "vac1") "],\"asDouble\":0.0025") != NULL);
    testOk1(strstr(text, "\"count\":6,\"bucketCounts\":[2,0,") &&
            strstr(text, ",0,4],\"explicitBounds\":[5e-07,1e-06,1.5e-06,"));
    testOk1(strstr(text, "\"asDouble\":\"NaN\"") != NULL);

    testDiag("since when they count");
    n.now = 2000;
    n.putIoc[0].puts = 6;
    n.putIoc[1].puts = 1;
    n.chain[0].count = 5;
    n.ioc[0].processings = 78;
    ebpfMonExemplarClear(&exemplars, n.counted);
    len = ebpfMonOtlpMetricItems(&n, &exemplars, &since, text, sizeof(text) - 1, &points);
    text[len] = 0;
    testOk1(after(strstr(text, "\"epics.puts\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(after(strstr(text, "\"epics.root.latency\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(after(strstr(text, "\"epics.processings\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(!strstr(text, "exemplars"));
    testOk1(after(strstr(text, "\"ebpfmon.lost\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(after(strstr(text, "\"epics.chain.latency\""), "startTimeUnixNano\":\"") == 1000);
    n.now = 3000;
    n.putIoc[0].puts = 7;
    n.ioc[0].processings = 2; /* begun again under its name */
    n.chain[0].count = 1;
    n.lost[0].count = 0; /* reset */
    n.hist[0] = 1;       /* an IOC is gone */
    len = ebpfMonOtlpMetricItems(&n, &exemplars, &since, text, sizeof(text) - 1, &points);
    text[len] = 0;
    testOk1(after(strstr(text, "\"epics.puts\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(after(strstr(text, "\"epics.root.latency\""), "startTimeUnixNano\":\"") == 2000);
    testOk1(after(strstr(text, "\"epics.processings\""), "startTimeUnixNano\":\"") == 2000);
    testOk1(after(strstr(text, "\"ebpfmon.lost\""), "startTimeUnixNano\":\"") == 2000);
    testOk1(after(strstr(text, "\"epics.chain.latency\""), "startTimeUnixNano\":\"") == 2000);
    n.now = 4000;
    strcpy(n.root, "A"); /* CHAIN_HIST_ROOT */
    len = ebpfMonOtlpMetricItems(&n, &exemplars, &since, text, sizeof(text) - 1, &points);
    text[len] = 0;
    testOk1(after(strstr(text, "\"epics.chain.latency\""), "startTimeUnixNano\":\"") == 3000);
    testOk1(ebpfMonOtlpMetricItems(&n, &exemplars, &since, text, 500, &points) == 0);
}

static void testAnswers(void)
{
    static const char partial[] =
        "{\"partialSuccess\":{\"rejectedLogRecords\":\"3\",\"errorMessage\":\"too old\"}}";
    char garbage[64];

    testDiag("answers");
    testOk1(ebpfMonOtlpRejected(partial, strlen(partial), why, sizeof(why)) == 3 && strcmp(why, "too old") == 0);
    testOk1(ebpfMonOtlpRejected("{\"partialSuccess\":{\"rejectedSpans\":2}}", 38, why, sizeof(why)) == 2 && !why[0]);
    testOk1(ebpfMonOtlpRejected("{\"partialSuccess\":null}", 23, why, sizeof(why)) == 0);
    testOk1(ebpfMonOtlpRejected("{\"rejectedSpans\":-2}", 20, why, sizeof(why)) == 0);
    testOk1(ebpfMonOtlpRejected("", 0, why, sizeof(why)) == 0);
    for (size_t n = 0; n < strlen(partial); n++)
        if (ebpfMonOtlpRejected(partial, n, why, sizeof(why)))
            testFail("a piece of an answer");
    memset(garbage, 0xff, sizeof(garbage));
    testOk1(ebpfMonOtlpRejected(garbage, sizeof(garbage), why, sizeof(why)) == 0);
}

/* --- against a server --- */

typedef enum { accepts, refuses, tooMany, tooManyOnce, busy, garbage, hangs, redirects, closes, partly } manner;

static struct {
    int listening, port;
    epicsMutexId lock; /* of the rest */
    manner manner;
    int end;
    unsigned requests, records, spans, zipkins, metrics;
    double first, second; /* s: of the first two requests since the manner changed */
    unsigned char seen[200000];
    char header[2048];
} server;

static epicsEventId serverEnded;

static void setManner(manner m)
{
    epicsMutexMustLock(server.lock);
    server.manner = m;
    server.requests = server.records = server.spans = server.zipkins = server.metrics = 0;
    server.first = server.second = 0;
    memset(server.seen, 0, sizeof(server.seen));
    epicsMutexUnlock(server.lock);
}

static int ended(void)
{
    int end;

    epicsMutexMustLock(server.lock);
    end = server.end;
    epicsMutexUnlock(server.lock);
    return end;
}

static int readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (!ended())
        if (poll(&p, 1, 20) > 0)
            return 1;
    return 0;
}

static void say(int fd, const char *answer)
{
    if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
        testDiag("the client is gone");
}

#define HEAD(status) "HTTP/1.1 " status "\r\nConnection: close\r\n"
#define BODY(body, size) "Content-Length: " size "\r\n\r\n" body

#define PV "\"epics.pv\",\"value\":{\"stringValue\":\"P"

static void count(const char *body)
{
    unsigned number;

    for (const char *at = body; (at = strstr(at, "\"timeUnixNano\"")); at++) {
        const char *pv = strstr(at, PV);

        server.records++;
        if (pv && sscanf(pv + sizeof(PV) - 1, "%u", &number) == 1 && number < sizeof(server.seen))
            server.seen[number]++;
    }
}

static void answer(int fd, const char *header, const char *body)
{
    manner m;

    epicsMutexMustLock(server.lock);
    m = server.manner;
    server.requests++;
    if (!server.first)
        server.first = seconds();
    else if (!server.second)
        server.second = seconds();
    snprintf(server.header, sizeof(server.header), "%.2000s", header);
    if (m == tooManyOnce)
        server.manner = accepts;
    if (m == accepts || m == partly) {
        if (strstr(header, "/v1/logs"))
            count(body);
        server.spans += strstr(header, "/v1/traces") && strstr(body, "\"spanId\"");
        server.zipkins += strstr(header, "POST /api/v2/spans") && strstr(body, "[{\"traceId\"");
        server.metrics += strstr(header, "/v1/metrics") && strstr(body, "\"ebpfmon.mem\"");
    }
    epicsMutexUnlock(server.lock);
    switch (m) {
    case accepts:     say(fd, HEAD("200 OK") BODY("{}", "2")); break;
    case partly:      say(fd, HEAD("200 OK") BODY("{\"partialSuccess\":{\"rejectedLogRecords\":\"2\"}}", "45")); break;
    case refuses:     say(fd, HEAD("400 Bad Request") BODY("no", "2")); break;
    case tooMany:     say(fd, HEAD("429 Too Many") "Retry-After: 60\r\n" BODY("", "0")); break;
    case tooManyOnce: say(fd, HEAD("429 Too Many") "Retry-After: 2\r\n" BODY("", "0")); break;
    case busy:        say(fd, HEAD("503 Busy") BODY("", "0")); break;
    case redirects:   say(fd, HEAD("302 Found") "Location: http://127.0.0.1:1/\r\n" BODY("", "0")); break;
    case garbage:     say(fd, "\x15\x03\x01 220 smtp ready\r\n"); break;
    case hangs:       readable(fd); break; /* until the client is gone */
    case closes:      break;
    }
}

/* One request of a connection. */
static void serve(int fd)
{
    static char request[1 << 20];
    size_t len = 0, want = 0;
    char *body = NULL, *length;

    while (!body || len < want) {
        size_t room = sizeof(request) - 1 - len;
        ssize_t n = room && readable(fd) ? recv(fd, request + len, room, 0) : 0;

        if (n <= 0)
            return;
        len += (size_t)n;
        request[len] = 0;
        if (!body && (body = strstr(request, "\r\n\r\n"))) {
            *body = 0;
            body += 4;
            length = strstr(request, "Content-Length: ");
            want = (size_t)(body - request) + (length ? strtoul(length + 16, NULL, 10) : 0);
        }
    }
    answer(fd, request, body);
}

static void serverThread(void *unused)
{
    while (readable(server.listening)) {
        int fd = accept(server.listening, NULL, NULL);

        if (fd < 0)
            continue;
        serve(fd);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
    epicsEventMustTrigger(serverEnded);
}

static void serverStart(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);

    server.lock = epicsMutexMustCreate();
    serverEnded = epicsEventMustCreate(epicsEventEmpty);
    server.listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server.listening, (struct sockaddr *)&a, size) || listen(server.listening, 10) ||
        getsockname(server.listening, (struct sockaddr *)&a, &size))
        testAbort("no server");
    server.port = ntohs(a.sin_port);
    epicsThreadMustCreate("server", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackBig),
                          serverThread, NULL);
}

static unsigned requests(void)
{
    unsigned n;

    epicsMutexMustLock(server.lock);
    n = server.requests;
    epicsMutexUnlock(server.lock);
    return n;
}

static unsigned records(void)
{
    unsigned n;

    epicsMutexMustLock(server.lock);
    n = server.records;
    epicsMutexUnlock(server.lock);
    return n;
}

typedef struct { uint64_t sent, lost; ebpfMonLogState state; char msg[256]; double queue; } shown;

static shown look(void)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    shown s = {published->otlp.sent, published->otlp.lost, published->otlp.state, "", published->otlp.queue};

    strcpy(s.msg, published->otlp.message);
    ebpfMonPublishedUnlock();
    return s;
}

#define WAIT(condition) do { \
        double by_ = seconds() + DEADLINE; \
        while (!(condition) && seconds() < by_) \
            epicsThreadSleep(0.01); \
        testOk(condition, "%s", #condition); \
    } while (0)

static shown before;

static void begin(manner m, const char *which)
{
    char base[40];

    setManner(m);
    before = look();
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", server.port);
    if (ebpfMonOtlpConfCommand(&conf, base, which, "X-Lab=B2", why, sizeof(why)))
        testAbort("%s", why);
}

static void put(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        ebpfMonPut p = somePut(i);

        ebpfMonExportPut(&p);
    }
}

/* Ends it, within its time; all that was produced was accepted, or is counted. */
static void finish(double within, unsigned produced)
{
    double start = seconds();
    uint64_t sent, lost;

    ebpfMonExportStop(within);
    testOk(seconds() - start < within + 1, "ended after %.2f s", seconds() - start);
    sent = look().sent - before.sent;
    lost = look().lost - before.lost;
    testOk(sent + lost == produced, "%" PRIu64 " accepted + %" PRIu64 " lost == %u", sent, lost, produced);
    testOk1(look().state == ebpfMonLogNone);
}

static void testAccepting(void)
{
    enum { N = 5000 };
    unsigned missing = 0, twice = 0;

    testDiag("a collector that works");
    put(0, 10); /* nothing is configured: nowhere */
    begin(accepts, "logs");
    testOk1(ebpfMonOtlpConfigure(&conf) == 0);
    put(0, N);
    WAIT(records() == N);
    WAIT(look().sent - before.sent == N);
    testOk(look().state == ebpfMonLogOk, "%s", look().msg);
    epicsMutexMustLock(server.lock);
    for (unsigned i = 0; i < N; i++) {
        missing += !server.seen[i];
        twice += server.seen[i] > 1;
    }
    testOk(!missing && !twice, "%u missing, %u twice", missing, twice);
    testOk1(server.requests >= N / 512 && server.requests < 100);
    testOk1(strstr(server.header, "POST /v1/logs HTTP/1.1") && strstr(server.header, "X-Lab: B2") &&
            strstr(server.header, "Content-Type: application/json"));
    epicsMutexUnlock(server.lock);
    put(N, N + 3); /* what waits is sent at the end */
    finish(5, N + 3);
    testOk1(records() == N + 3 && look().lost == before.lost);
}

static void testRefusing(void)
{
    testDiag("400: lost, and said");
    begin(refuses, "logs");
    ebpfMonOtlpConfigure(&conf);
    put(0, 100);
    WAIT(look().lost - before.lost == 100);
    testOk(look().state == ebpfMonLogTrouble && strstr(look().msg, "400"), "%s", look().msg);
    setManner(accepts);
    put(100, 200);
    WAIT(records() == 100);
    WAIT(look().state == ebpfMonLogOk);
    finish(3, 200);

    testDiag("a redirect is not followed");
    begin(redirects, "logs");
    ebpfMonOtlpConfigure(&conf);
    put(0, 10);
    WAIT(look().lost - before.lost == 10);
    testOk(strstr(look().msg, "redirects") != NULL, "%s", look().msg);
    finish(3, 10);

    testDiag("some of a batch");
    begin(partly, "logs");
    ebpfMonOtlpConfigure(&conf);
    put(0, 10);
    WAIT(look().lost - before.lost == 2);
    testOk(look().state == ebpfMonLogTrouble && strstr(look().msg, "refused some"), "%s", look().msg);
    finish(3, 10);
}

static void testAgain(void)
{
    testDiag("Retry-After");
    begin(tooManyOnce, "logs");
    ebpfMonOtlpConfigure(&conf);
    put(0, 50);
    WAIT(records() == 50);
    testOk(server.second - server.first >= 1.9, "again after %.2f s", server.second - server.first);
    finish(3, 50);
    testOk1(look().lost == before.lost);

    testDiag("503, garbage, a closed connection: all arrives later");
    begin(busy, "logs");
    ebpfMonOtlpConfigure(&conf);
    put(0, 2000);
    WAIT(requests() >= 2);
    WAIT(look().state == ebpfMonLogTrouble);
    setManner(garbage);
    WAIT(requests() >= 1);
    setManner(closes);
    WAIT(requests() >= 1);
    setManner(accepts);
    WAIT(records() == 2000);
    WAIT(look().state == ebpfMonLogOk);
    finish(3, 2000);
    testOk1(look().lost == before.lost);

    testDiag("given up in the end");
    begin(busy, "logs");
    conf.giveUp = 1;
    ebpfMonOtlpConfigure(&conf);
    put(0, 600);
    WAIT(look().lost - before.lost >= 512);
    put(600, 610);
    finish(3, 610);
    testOk1(look().sent == before.sent);

    testDiag("told to wait for a minute: the end comes all the same");
    begin(tooMany, "logs");
    ebpfMonOtlpConfigure(&conf);
    put(0, 600);
    WAIT(requests() >= 1);
    finish(2, 600);
}

static void testHanging(void)
{
    double start;

    testDiag("a collector that hangs");
    begin(hangs, "logs");
    conf.target[ebpfMonOtlpLogs].timeout = 0.3;
    ebpfMonOtlpConfigure(&conf);
    start = seconds();
    put(0, 100000);
    testOk(seconds() - start < 5, "nobody waits: 100000 puts in %.2f s", seconds() - start);
    WAIT(look().state == ebpfMonLogTrouble);
    WAIT(look().lost - before.lost > 1000); /* the queue is full */
    testOk1(look().queue > 90);
    conf.target[ebpfMonOtlpLogs].timeout = 10;
    ebpfMonOtlpConfigure(&conf);
    finish(1, 100000);

    testDiag("none is there");
    begin(accepts, "logs");
    snprintf(conf.target[ebpfMonOtlpLogs].url, sizeof(conf.target[0].url), "http://127.0.0.1:1/v1/logs");
    ebpfMonOtlpConfigure(&conf);
    put(0, 10);
    WAIT(look().state == ebpfMonLogTrouble);
    testOk(strstr(look().msg, "start the collector") != NULL, "%s", look().msg);
    finish(5, 10);
}

static void testSignals(void)
{
    ebpfMonSpan s = {.trace = {1}, .id = {2}, .kind = ebpfMonSpanInternal, .start = 1, .end = 2, .name = "x"};
    unsigned spans, zipkins, metrics;
    char base[40], zipkin[60];

    testDiag("metrics and spans");
    begin(accepts, "metrics,traces");
    conf.interval = 0.2;
    ebpfMonOtlpConfigure(&conf);
    ebpfMonExportSpan(&s);
    put(0, 10); /* logs are not asked for */
    WAIT(requests() >= 4);
    WAIT(look().sent > before.sent);
    ebpfMonExportStop(3);
    epicsMutexMustLock(server.lock);
    spans = server.spans;
    metrics = server.metrics;
    epicsMutexUnlock(server.lock);
    testOk(metrics >= 3 && spans == 1 && records() == 0, "%u times metrics, %u spans", metrics, spans);
    testOk1(look().lost == before.lost);

    testDiag("spans to Zipkin, beside OTLP");
    begin(accepts, "traces");
    snprintf(zipkin, sizeof(zipkin), "http://127.0.0.1:%d/api/v2/spans", server.port);
    testOk1(!ebpfMonExportsSpans());
    testOk1(ebpfMonLogOpsGet()->zipkin("nonsense") != 0 && ebpfMonLogOpsGet()->zipkin(zipkin) == 0);
    testOk1(ebpfMonExportsSpans());
    ebpfMonExportSpan(&s);
    WAIT(requests() >= 1);
    WAIT(look().sent == before.sent + 1);
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", server.port);
    testOk1(ebpfMonLogOpsGet()->otlp(base, "traces", "") == 0); /* Zipkin stays */
    ebpfMonExportSpan(&s);
    WAIT(look().sent == before.sent + 3);
    testOk1(ebpfMonLogOpsGet()->zipkin("off") == 0);
    ebpfMonExportSpan(&s);
    WAIT(look().sent == before.sent + 4);
    ebpfMonExportStop(3);
    epicsMutexMustLock(server.lock);
    spans = server.spans;
    zipkins = server.zipkins;
    epicsMutexUnlock(server.lock);
    testOk(spans == 2 && zipkins == 2 && look().lost == before.lost, "%u spans, %u to Zipkin", spans, zipkins);

    testDiag("metrics that are late are none lost");
    begin(busy, "metrics");
    conf.interval = 0.1;
    ebpfMonOtlpConfigure(&conf);
    WAIT(requests() >= 2);
    setManner(accepts);
    WAIT(requests() >= 2);
    ebpfMonExportStop(3);
    testOk1(look().lost == before.lost);

    testDiag("by the environment, by the command, and off");
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", server.port);
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", base, 1);
    setenv("OTEL_METRICS_EXPORTER", "none", 1);
    setManner(accepts);
    before = look();
    ebpfMonExportStart();
    put(0, 5);
    WAIT(records() == 5);
    testOk1(ebpfMonLogOpsGet()->otlp(base, "metrics", "") == 0);
    put(5, 10);
    testOk1(ebpfMonLogOpsGet()->otlp("off", "", "") == 0);
    WAIT(look().state == ebpfMonLogNone);
    ebpfMonExportStart(); /* the command has won */
    put(10, 15);
    testOk1(ebpfMonLogOpsGet()->otlp("nonsense", "logs", "") != 0);
    ebpfMonLogOpsGet()->otlpReport(1);
    ebpfMonExportStop(3);
    testOk1(records() == 5);
    clearEnvironment();

    testDiag("the losses are set back");
    begin(refuses, "logs");
    ebpfMonOtlpConfigure(&conf);
    put(0, 1);
    WAIT(look().lost > before.lost);
    ebpfMonLogOpsGet()->resetLost();
    WAIT(look().lost == 0);
    put(1, 3);
    WAIT(look().lost == 2);
    ebpfMonExportStop(3);
}

MAIN(testOtlp)
{
    testPlan(0);
    setenv("TZ", "UTC", 1);
    tzset();
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* not for loopback */
    testPairs();
    testEnvironment();
    testJson();
    testMetrics();
    testAnswers();
    ebpfMonExportRegister();
    serverStart();
    eltc(0);
    testAccepting();
    testRefusing();
    testAgain();
    testHanging();
    testSignals();
    epicsMutexMustLock(server.lock);
    server.end = 1;
    epicsMutexUnlock(server.lock);
    epicsEventMustWait(serverEnded);
    return testDone();
}
