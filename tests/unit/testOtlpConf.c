/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of OTLP: lists of pairs, the environment, the command. */
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "otlp/otlpConf.h"
#include "otlpTest.h"

static ebpfMonOtlpConf conf;
static char why[256];

static void testPairs(void)
{
    ebpfMonOtlpPairs p;
    const char *key, *value;
    char longer[2100];

    testDiag("lists of pairs");
    testOk1(ebpfMonOtlpPairsParse(&p, " a = b ,,c=d%2Ce%20f%3dg, h=") == 0 && p.pairs == 3);
    key = ebpfMonOtlpPairsGetNext(&p, NULL, &value);
    testOk1(key && strcmp(key, "a") == 0 && strcmp(value, "b") == 0);
    key = ebpfMonOtlpPairsGetNext(&p, key, &value);
    testOk1(key && strcmp(key, "c") == 0 && strcmp(value, "d,e f=g") == 0);
    key = ebpfMonOtlpPairsGetNext(&p, key, &value);
    testOk1(key && strcmp(key, "h") == 0 && strcmp(value, "") == 0);
    testOk1(!ebpfMonOtlpPairsGetNext(&p, key, &value));
    testOk1(ebpfMonOtlpPairsParse(&p, "") == 0 && !ebpfMonOtlpPairsGetNext(&p, NULL, &value));
    testOk1(ebpfMonOtlpPairsParse(&p, "a=x=y") == 0 && ebpfMonOtlpPairsGetNext(&p, NULL, &value) &&
            strcmp(value, "x=y") == 0);
    testOk1(ebpfMonOtlpPairsParse(&p, "a") != 0 && ebpfMonOtlpPairsParse(&p, "=b") != 0);
    testOk1(ebpfMonOtlpPairsParse(&p, "a=%4") != 0 && ebpfMonOtlpPairsParse(&p, "a=%zz") != 0);
    testOk(ebpfMonOtlpPairsParse(&p, "a=b%0d%0aEvil: 1") != 0, "a line feed in a header is refused");
    for (size_t size = 2040; size <= 2060; size++) {
        memset(longer, 'x', size);
        memcpy(longer, "k=", 2);
        longer[size] = 0;
        if (ebpfMonOtlpPairsParse(&p, longer) == 0 && p.len > sizeof(p.text))
            testFail("a list that is too long is refused");
    }
    testOk1(ebpfMonOtlpPairsParse(&p, longer) != 0);
}

static int fromEnvironment(void)
{
    return ebpfMonOtlpConfReadEnvironment(&conf, why, sizeof(why));
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
    testOk1(ebpfMonOtlpPairsGetNext(&conf.target[ebpfMonOtlpTraces].headers, NULL, &value) &&
            strcmp(value, "Basic abc") == 0);
    testOk1(conf.target[ebpfMonOtlpLogs].timeout == 2.5 && conf.target[ebpfMonOtlpMetrics].timeout == 0.1);
    testOk1(strcmp(conf.service, "one") == 0);
    setenv("OTEL_SERVICE_NAME", "two", 1);
    testOk1(fromEnvironment() == 1 && strcmp(conf.service, "two") == 0);
    setenv("OTEL_SDK_DISABLED", "True", 1);
    testOk1(fromEnvironment() == 0);
    unsetenv("OTEL_SDK_DISABLED");
}

static void testWrongEnvironment(void)
{
    testDiag("environment variables with mistakes");
    clearEnvironment();
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2500", 1);
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
}

static void testZipkinEnvironment(void)
{
    testDiag("Zipkin in the environment");
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
}

static void testCommand(void)
{
    testDiag("the command");
    testOk1(ebpfMonOtlpConfSetCommand(&conf, "http://h:1/", "logs, metrics", "A=b", why, sizeof(why)) == 0);
    testOk1(strcmp(url(ebpfMonOtlpLogs), "http://h:1/v1/logs") == 0 && url(ebpfMonOtlpMetrics)[0] &&
            !url(ebpfMonOtlpTraces)[0] && conf.target[ebpfMonOtlpLogs].headers.pairs == 1);
    testOk(ebpfMonOtlpConfSetCommand(&conf, "http://h", "logs,puts", "", why, sizeof(why)) < 0, "%s", why);
    testOk(ebpfMonOtlpConfSetCommand(&conf, "http://h", "logs", "nonsense", why, sizeof(why)) < 0, "%s", why);
    testOk1(ebpfMonOtlpConfSetCommand(&conf, "off", "logs", "", why, sizeof(why)) == 0 && !url(ebpfMonOtlpLogs)[0]);
}

MAIN(testOtlpConf)
{
    testPlan(0);
    testPairs();
    testEnvironment();
    testWrongEnvironment();
    testZipkinEnvironment();
    testCommand();
    return testDone();
}
