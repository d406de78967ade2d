/* SPDX-License-Identifier: BSD-3-Clause */
/* OTLP's metrics: values, histograms with exemplars, and start times. */
#include <math.h>

#include <dbDefs.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "otlp/otlpMetrics.h"
#include "otlp/otlpSender.h"
#include "module/modules.h"
#include "otlpTest.h"

static ebpfMonJson json;
static char text[400000];

#define EXEMPLAR "\"exemplars\":[{\"timeUnixNano\":8000,\"filteredAttributes\":[],\"asDouble\":7e-06," \
    "\"traceId\":\"ab000000000000000000000000000000\",\"spanId\":\"cd00000000000000\"}]"

/* The number after a text. */
static uint64_t after(const char *from, const char *key)
{
    const char *at = from ? strstr(from, key) : NULL;

    return at ? strtoull(at + strlen(key), NULL, 10) : UINT64_MAX;
}

static ebpfMonOtlpNumbers n;
static ebpfMonOtlpSinces since;
static ebpfMonExemplars exemplars;

static void setNumbers(void)
{
    ebpfMonSpan chain = {.trace = {0xab}, .id = {0xcd}, .start = 1000, .end = 8000, .latency = 7000,
                         .root = "R", .service = {"vac1"}};

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
    n.unexpected = 4;
    n.processes = 1;
    n.process[0] = (ebpfMonOtlpProcess){ .name = "vac1", .cpu = 12.5, .mem = 40 };
    n.gone = 2;
    n.state = ebpfMonDegraded;
    n.cpu = NAN;
    for (unsigned i = 0; i < EBPFMON_HIST_MAX; i++)
        n.edge[i] = i * 0.5;
    n.hist[0] = 2;
    n.hist[EBPFMON_HIST_MAX - 1] = 4;
}

static void testMetrics(void)
{
    const char *root;
    unsigned points;
    size_t len;

    testDiag("metrics");
    setNumbers();
    len = ebpfMonOtlpWriteMetrics(&json, &n, &exemplars, &since, text + 1, sizeof(text) - 3, &points);
    text[0] = '[';
    strcpy(text + 1 + len, "]");
    testOk(isJson(text, len + 2) && points == 23, "%u points", points);
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
    testOk1(after(strstr(text, "\"epics.puts_unexpected\""), "\"asInt\":") == 4);
    testOk1(after(strstr(text, "\"epics.iocs_gone\""), "\"asDouble\":") == 2);
    testOk1(after(strstr(text, "\"ebpfmon.state\""), "\"asDouble\":") == 2);
    testOk1(strstr(text, "\"attributes\":[" S("epics.ioc", "vac1") "],\"asDouble\":0.125") != NULL);
    testOk1(strstr(text, "\"attributes\":[" S("epics.ioc", "vac1") "],\"asDouble\":40000000") != NULL);
}

/* What the module of this test gives. */
static ebpfMonModuleMetric given[64];
static unsigned givenCount;

static void giveMetrics(void *arg, ebpfMonModuleTakeMetric take, void *to)
{
    for (unsigned i = 0; i < givenCount; i++)
        take(to, &given[i]);
}

/* Two metrics of a module: names of attributes, base units, and start times. */
static void testModuleMetrics(void)
{
    static ebpfMonOtlpSinces starts;
    static ebpfMonOtlpNumbers q;
    ebpfMonModuleMetricRow row[] = {
        { .key = {"vac1", "a", "b"}, .count = 7, .sum = 2500000, .max = 1000, .min = 1, .p99 = 900,
          .bar = (double[]){ 4, 0, 3 } },
        { .key = {"vac1", "a", "c"}, .count = 1, .min = -1, .bar = (double[]){ 0, 0, 0 } },
        { .key = {"scan-1"}, .count = 3, .p99 = NAN },
    };
    unsigned points;
    size_t len;

    testDiag("metrics of modules");
    q.now = 1000;
    given[0] = (ebpfMonModuleMetric){
        .kind = "query", .name = "PUT_TIME", .title = "How long", .unit = "us", .keys = 3, .hasValue = 1, .rows = 2,
        .keyName = {"ioc", "arg1", "arg1"}, .row = row, .bars = 3, .barMost = (double[]){ 8, 16 },
    };
    given[1] = (ebpfMonModuleMetric){ .kind = "query", .name = "n", .title = "Events of this query", .unit = "",
                                      .keys = 1, .keyName = {"thread"}, .row = row + 2, .rows = 1 };
    givenCount = 2;
    len = ebpfMonOtlpWriteMetrics(&json, &q, &exemplars, &starts, text + 1, sizeof(text) - 3, &points);
    text[0] = '[';
    strcpy(text + 1 + len, "]");
    testOk1(isJson(text, len + 2));
    testOk1(
        strstr(text,
               "{\"name\":\"epics.query.PUT_TIME.events\",\"unit\":\"{event}\",\"description\":\"How long\",\"sum\":{"
               "\"aggregationTemporality\":2,\"isMonotonic\":true,") != NULL);
    testOk1(strstr(text, "\"attributes\":[" S("epics.ioc", "vac1") "," S("epics.query.arg1", "a") "," S(
                             "epics.query.arg1.3", "b") "],\"asInt\":7}") != NULL);
    testOk1(strstr(strstr(text, "epics.query.PUT_TIME.sum\",\"unit\":\"s\""), "\"isMonotonic\":false") != NULL);
    testOk1(strstr(strstr(text, "epics.query.PUT_TIME.sum\""), "\"asDouble\":2.5}") != NULL);
    testOk1(strstr(strstr(text, "epics.query.PUT_TIME.max\""), "\"asDouble\":0.001}") != NULL);
    testOk1(strstr(strstr(text, "epics.query.PUT_TIME.p99\""), "\"asDouble\":0.0009}") != NULL);
    testOk1(strstr(strstr(text, "epics.query.PUT_TIME.histogram\",\"unit\":\"s\""),
                   "],\"count\":7,\"bucketCounts\":[4,0,3],"
                   "\"explicitBounds\":[8e-06,1.6e-05],\"sum\":2.5,\"min\":1e-06,\"max\":0.001}") != NULL);
    testOk(strstr(strstr(text, "epics.query.PUT_TIME.histogram"), "],\"min\":-1e-06,") &&
               !strstr(text, "epics.query.n.histogram"),
           "no sum of values below 0; no histogram of a query that has none");
    testOk1(strstr(text, "epics.query.n.events\",\"unit\":\"{event}\",\"description\":\"Events of this query") != NULL);
    testOk1(strstr(text, "\"attributes\":[" S("thread.name", "scan-1") "],\"asInt\":3}") &&
            !strstr(text, "epics.query.n.sum"));
    q.now = 2000;
    row[0].count = 8;
    len = ebpfMonOtlpWriteMetrics(&json, &q, &exemplars, &starts, text, sizeof(text) - 1, &points);
    q.now = 3000;
    row[2].count = 1; /* started again */
    len = ebpfMonOtlpWriteMetrics(&json, &q, &exemplars, &starts, text, sizeof(text) - 1, &points);
    text[len] = 0;
    testOk1(after(strstr(text, "\"epics.query.PUT_TIME.events\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(after(strstr(text, "\"epics.query.n.events\""), "startTimeUnixNano\":\"") == 2000);
    givenCount = 0;
}

/* The largest numbers of IOCs and roots, with long names: a metric that does not fit is not sent at all. */
static void testMost(void)
{
    enum { BARS = 64 };
    static ebpfMonModuleMetricRow row[EBPFMON_OTLP_MODULE_ROWS + 1];
    static ebpfMonOtlpNumbers most;
    static ebpfMonOtlpSinces starts;
    static char buffer[EBPFMON_OTLP_METRICS];
    double bar[BARS], barMost[BARS];
    char word[64] = "";
    unsigned points;
    size_t len;

    most.now = 1790000000000000000;
    most.putIocs = most.iocs = EBPFMON_IOCS_MAX;
    most.processes = EBPFMON_HEALTH_IOCS;
    most.roots = EBPFMON_TOP_MAX;
    for (unsigned i = 0; i < EBPFMON_IOCS_MAX; i++) {
        memset(most.putIoc[i].name, 'p', sizeof(most.putIoc[i].name) - 1);
        memset(most.ioc[i].name, 'i', sizeof(most.ioc[i].name) - 1);
        memset(most.process[i].name, 'h', sizeof(most.process[i].name) - 1);
        most.putIoc[i].puts = most.ioc[i].processings = most.putIoc[i].denied = UINT64_MAX >> 1;
        most.ioc[i].cost = most.process[i].cpu = most.process[i].mem = 100. / 3;
    }
    for (unsigned b = 0; b < BARS; b++) {
        bar[b] = 1e9;
        barMost[b] = (double)(1ull << b) / 3;
    }
    memset(word, 'k', sizeof(word) - 1);
    for (unsigned i = 0; i < EBPFMON_OTLP_MODULE_ROWS + 1; i++)
        row[i] = (ebpfMonModuleMetricRow){ .key = {word, word, word, word}, .min = 100. / 3, .sum = 100. / 3,
                                           .max = 100. / 3, .p99 = 100. / 3, .bar = bar };
    givenCount = NELEMENTS(given);
    for (unsigned i = 0; i < givenCount; i++) /* the last one has all the other rows, and one too many */
        given[i] = (ebpfMonModuleMetric){
            .kind = "query", .name = word + 32, .title = word, .unit = "", .keys = EBPFMON_METRIC_KEYS, .hasValue = 1,
            .keyName = {word + 55, word + 55, word + 55, word + 55}, .bars = BARS, .barMost = barMost, .row = row,
            .rows = i + 1 < givenCount ? 1 : EBPFMON_OTLP_MODULE_ROWS + 1 - i,
        };
    for (unsigned i = 0; i < EBPFMON_TOP_MAX; i++) {
        memset(most.chain[i].ioc, 'i', sizeof(most.chain[i].ioc) - 1);
        memset(most.chain[i].root, 'r', sizeof(most.chain[i].root) - 1);
        for (unsigned k = 0; k < EBPFMON_HIST_MAX; k++)
            most.chain[i].hist[k] = 1e9;
    }
    for (unsigned k = 0; k < EBPFMON_HIST_MAX; k++)
        most.edge[k] = (double)(1u << k) / 3;
    len = ebpfMonOtlpWriteMetrics(&json, &most, &exemplars, &starts, buffer, sizeof(buffer), &points);
    testOk(len > 0, "%u points are %zu bytes", points, len);
    len = ebpfMonOtlpWriteMetrics(&json, &most, &exemplars, &starts, buffer, sizeof(buffer) * 4 / 5, &points);
    testOk(len > 0, "and a fifth is free");
}

static void testSince(void)
{
    unsigned points;
    size_t len;

    testDiag("the time since which counters count");
    n.now = 2000;
    n.putIoc[0].puts = 6;
    n.putIoc[1].puts = 1;
    n.chain[0].count = 5;
    n.ioc[0].processings = 78;
    ebpfMonExemplarClear(&exemplars, n.counted);
    len = ebpfMonOtlpWriteMetrics(&json, &n, &exemplars, &since, text, sizeof(text) - 1, &points);
    text[len] = 0;
    testOk1(after(strstr(text, "\"epics.puts\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(after(strstr(text, "\"epics.root.latency\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(after(strstr(text, "\"epics.processings\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(!strstr(text, "exemplars"));
    testOk1(after(strstr(text, "\"ebpfmon.lost\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(after(strstr(text, "\"epics.chain.latency\""), "startTimeUnixNano\":\"") == 1000);
    n.now = 3000;
    n.putIoc[0].puts = 7;
    n.ioc[0].processings = 2; /* started again with the same name */
    n.chain[0].count = 1;
    n.lost[0].count = 0; /* reset */
    n.hist[0] = 1;       /* an IOC is gone */
    len = ebpfMonOtlpWriteMetrics(&json, &n, &exemplars, &since, text, sizeof(text) - 1, &points);
    text[len] = 0;
    testOk1(after(strstr(text, "\"epics.puts\""), "startTimeUnixNano\":\"") == 1000);
    testOk1(after(strstr(text, "\"epics.root.latency\""), "startTimeUnixNano\":\"") == 2000);
    testOk1(after(strstr(text, "\"epics.processings\""), "startTimeUnixNano\":\"") == 2000);
    testOk1(after(strstr(text, "\"ebpfmon.lost\""), "startTimeUnixNano\":\"") == 2000);
    testOk1(after(strstr(text, "\"epics.chain.latency\""), "startTimeUnixNano\":\"") == 2000);
    n.now = 4000;
    strcpy(n.root, "A"); /* CHAIN_HIST_ROOT */
    len = ebpfMonOtlpWriteMetrics(&json, &n, &exemplars, &since, text, sizeof(text) - 1, &points);
    text[len] = 0;
    testOk1(after(strstr(text, "\"epics.chain.latency\""), "startTimeUnixNano\":\"") == 3000);
    testOk1(ebpfMonOtlpWriteMetrics(&json, &n, &exemplars, &since, text, 500, &points) == 0);
}

MAIN(testOtlpMetrics)
{
    static ebpfMonModule module = { .name = "test", .metrics = giveMetrics };

    testPlan(0);
    ebpfMonModuleAdd(&module);
    testMetrics();
    testSince();
    testModuleMetrics();
    testMost();
    ebpfMonJsonFree(&json);
    return testDone();
}
