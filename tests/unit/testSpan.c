/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans: their making, their packing for the queue, their JSON for OTLP and Zipkin, and the choice of exemplars. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>
#include <yajl_parse.h>

#include "otlp/otlpJson.h"
#include "otlp/otlpMetrics.h"
#include "otlp/otlpSender.h"
#include "trace/span.h"
#include "otlpTest.h"

static ebpfMonOtlpConf conf;
static ebpfMonJson json;
static char text[100000];

/* "HOST" in an expected text is the name of this host. */
static void expect(const char *what, const char *pattern, size_t len)
{
    static char wanted[4000];
    size_t at = 0;

    for (; *pattern; pattern++) {
        if (strncmp(pattern, "HOST", 4) == 0) {
            at += (size_t)sprintf(wanted + at, "%s", conf.host);
            pattern += 3;
        } else {
            wanted[at++] = *pattern;
        }
    }
    wanted[at] = 0;
    testOk(len == strlen(wanted) && memcmp(text, wanted, len) == 0, "%s", what);
    if (len != strlen(wanted) || memcmp(text, wanted, len) != 0)
        testDiag("is     %.*s\nwanted %s", (int)len, text, wanted);
}

static ebpfMonSpan someSpan(void)
{
    ebpfMonSpan s = {
        .trace = {0x5b, 0x8e, [15] = 0xd2}, .id = {0xee, [7] = 0x17}, .kind = ebpfMonSpanServer,
        .status = ebpfMonSpanError, .start = 1544712660000000999u, .end = 1544712661000001000u, .name = "put P",
        .message = "denied", .root = "P",
        .service = {.name = "vac1", .pid = 42, .version = "7.0.8.1", .container = "abc"},
    };

    ebpfMonSpanAddText(&s, "t", "x");
    ebpfMonSpanAddText(&s, "nothing", "");
    ebpfMonSpanAddInteger(&s, "i", -5);
    ebpfMonSpanAddDouble(&s, "d", 2.5);
    ebpfMonSpanAddBool(&s, "b", 7);
    return s;
}

static void testMaking(void)
{
    static ebpfMonSpan s;
    static char longer[1000];
    uint8_t a[EBPFMON_TRACE_ID], b[EBPFMON_TRACE_ID], none[EBPFMON_SPAN_ID] = {0};
    ebpfMonSpan some = someSpan();

    testDiag("making spans");
    testOk1(some.attributes == 4 && some.attribute[3].integer == 1 && some.attribute[2].number == 2.5);
    memset(longer, 'x', sizeof(longer) - 1);
    for (unsigned i = 0; i < EBPFMON_SPAN_ATTRIBUTES; i++)
        ebpfMonSpanAddText(&s, "key", longer);
    ebpfMonSpanAddDouble(&s, "one more", 1);
    testOk1(s.attributes == EBPFMON_SPAN_ATTRIBUTES && s.dropped == 1);
    testOk1(strlen(s.attribute[0].text) == sizeof(s.attribute[0].text) - 1 &&
            strcmp(s.attribute[0].text + sizeof(s.attribute[0].text) - 4, "...") == 0);
    ebpfMonSpanNewId(a, sizeof(a));
    for (unsigned i = 0; i < EBPFMON_SPAN_LINKS + 2; i++)
        ebpfMonSpanAddLink(&s, a, none);
    testOk1(s.links == EBPFMON_SPAN_LINKS && memcmp(s.link[EBPFMON_SPAN_LINKS - 1].trace, a, sizeof(a)) == 0);
    ebpfMonSpanNewId(b, sizeof(b));
    testOk1(memcmp(a, b, sizeof(a)) != 0);
    testOk1(memcmp(a, none, sizeof(none)) != 0 && memcmp(b + 8, none, sizeof(none)) != 0);
}

static void testPacking(void)
{
    static uint8_t packed[EBPFMON_SPAN_PACK_MAX];
    ebpfMonSpan s = someSpan(), u;
    uint8_t other[EBPFMON_TRACE_ID] = {9, [15] = 1};
    size_t len;

    testDiag("packed for the queue");
    ebpfMonSpanAddLink(&s, other, other);
    s.parent[0] = 3;
    s.dropped = 70000;
    len = ebpfMonSpanPack(&s, packed);
    testOk(len < 300, "a span takes few bytes: %u", (unsigned)len);
    memset(&u, 0xaa, sizeof(u));
    memset(&u.service, 0, sizeof(u.service));
    ebpfMonSpanUnpack(packed, &u);
    testOk1(memcmp(u.trace, s.trace, 16) == 0 && memcmp(u.id, s.id, 8) == 0 && memcmp(u.parent, s.parent, 8) == 0);
    testOk1(u.start == s.start && u.end == s.end && u.kind == s.kind && u.status == s.status && u.dropped == 70000);
    testOk1(strcmp(u.name, s.name) == 0 && strcmp(u.message, s.message) == 0 && strcmp(u.root, s.root) == 0);
    testOk1(memcmp(&u.service, &s.service, sizeof(u.service)) == 0);
    testOk1(u.links == 1 && memcmp(u.link, s.link, sizeof(u.link[0])) == 0 && u.attributes == 4);
    for (unsigned i = 0; i < 4; i++)
        testOk1(u.attribute[i].type == s.attribute[i].type && strcmp(u.attribute[i].key, s.attribute[i].key) == 0);
    testOk1(strcmp(u.attribute[0].text, "x") == 0 && u.attribute[1].integer == -5 && u.attribute[2].number == 2.5);

    testDiag("the longest, and nonsense");
    memset(&s, 'x', sizeof(s)); /* texts without end, and numbers above all limits */
    for (unsigned i = 0; i < EBPFMON_SPAN_ATTRIBUTES; i++)
        s.attribute[i].type = ebpfMonSpanText;
    len = ebpfMonSpanPack(&s, packed);
    testOk(len <= EBPFMON_SPAN_PACK_MAX, "%u of %u bytes", (unsigned)len, (unsigned)EBPFMON_SPAN_PACK_MAX);
    ebpfMonSpanUnpack(packed, &u);
    testOk1(u.attributes == EBPFMON_SPAN_ATTRIBUTES && u.links == EBPFMON_SPAN_LINKS &&
            strlen(u.name) == sizeof(u.name) - 1);
    len = ebpfMonOtlpWriteSpan(&json, &u, text, sizeof(text));
    testOk1(isJson(text, len));
    len = ebpfMonZipkinWriteSpan(&json, &u, &conf, text, sizeof(text));
    testOk1(isJson(text, len));
}

static void testOtlp(void)
{
    ebpfMonSpan s = someSpan();
    uint8_t other[EBPFMON_TRACE_ID] = {9, [15] = 1};
    size_t len;

    testDiag("as OTLP's JSON");
    len = ebpfMonOtlpWriteServiceHead(&json, &s.service, &conf, text, sizeof(text));
    expect("an IOC", "{\"resource\":{\"attributes\":[" S("service.name", "vac1") "," S("service.instance.id", "HOST:42")
           "," I("process.pid", "42") "," S("epics.base.version", "7.0.8.1") "," S("container.id", "abc") ","
           S("host.name", "h") "," S("site", "lab") "]},\"scopeSpans\":[{\"scope\":{\"name\":\"ebpfMon\",\"version\":\""
           EBPFMON_VERSION "\"},\"spans\":[", len);
    len = ebpfMonOtlpWriteServiceHead(&json, &(ebpfMonSpanService){.pid = 42}, &conf, text, sizeof(text) - 1);
    text[len] = 0;
    testOk1(strstr(text, S("service.name", "ebpfMon") "," S("service.version", EBPFMON_VERSION)) != NULL);
    testOk1(!strstr(text, "process.pid"));
    len = ebpfMonOtlpWriteSpan(&json, &s, text, sizeof(text));
    expect("root", "{\"traceId\":\"5b8e00000000000000000000000000d2\",\"spanId\":\"ee00000000000017\","
           "\"name\":\"put P\",\"kind\":2,\"startTimeUnixNano\":\"1544712660000000999\","
           "\"endTimeUnixNano\":\"1544712661000001000\","
           "\"attributes\":[" S("t", "x") "," I("i", "-5") ",{\"key\":\"d\",\"value\":{\"doubleValue\":2.5}},"
           "{\"key\":\"b\",\"value\":{\"boolValue\":true}}],\"status\":{\"code\":2,\"message\":\"denied\"}}", len);
    s.parent[0] = 1;
    s.dropped = 3;
    ebpfMonSpanAddLink(&s, other, other);
    len = ebpfMonOtlpWriteSpan(&json, &s, text, sizeof(text) - 1);
    text[len] = 0;
    testOk1(isJson(text, len) && strstr(text, "\"parentSpanId\":\"0100000000000000\""));
    testOk1(strstr(text, "\"droppedAttributesCount\":3,\"links\":[{\"traceId\":\"09000000000000000000000000000001\","
                   "\"spanId\":\"0900000000000000\"}]") != NULL);
    for (size_t size = 0; size < len; size += 5)
        if (ebpfMonOtlpWriteSpan(&json, &s, text, size))
            testFail("%u bytes are enough?", (unsigned)size);
}

static void testZipkin(void)
{
    ebpfMonSpan s = someSpan();
    uint8_t other[EBPFMON_TRACE_ID] = {9, [15] = 1};
    size_t len;

    testDiag("as Zipkin's JSON");
    ebpfMonSpanAddLink(&s, other, other);
    len = ebpfMonZipkinWriteSpan(&json, &s, &conf, text, sizeof(text));
    expect("root", "{\"traceId\":\"5b8e00000000000000000000000000d2\",\"id\":\"ee00000000000017\",\"name\":\"put P\","
           "\"kind\":\"SERVER\",\"timestamp\":1544712660000000,\"duration\":1000001,\"localEndpoint\":{"
           "\"serviceName\":\"vac1\"},\"tags\":{\"t\":\"x\",\"i\":\"-5\",\"d\":\"2.5\",\"b\":\"true\","
           "\"link.0\":\"09000000000000000000000000000001:0900000000000000\",\"process.pid\":\"42\","
           "\"epics.base.version\":\"7.0.8.1\",\"container.id\":\"abc\",\"host.name\":\"HOST\","
           "\"otel.scope.name\":\"ebpfMon\",\"otel.status_code\":\"ERROR\",\"error\":\"denied\"}}", len);
    s.parent[7] = 5;
    s.kind = ebpfMonSpanInternal;
    s.status = ebpfMonSpanUnset;
    s.end = s.start + 10;
    s.service.name[0] = 0;
    ebpfMonSpanAddDouble(&s, "n", NAN);
    len = ebpfMonZipkinWriteSpan(&json, &s, &conf, text, sizeof(text) - 1);
    text[len] = 0;
    testOk1(isJson(text, len) && strstr(text, "\"parentId\":\"0000000000000005\"") && strstr(text, "\"duration\":1,"));
    testOk1(!strstr(text, "\"kind\"") && !strstr(text, "\"error\"") && strstr(text, "\"serviceName\":\"ebpfMon\""));
    s.end = 0; /* a clock that was set back */
    s.kind = (ebpfMonSpanKind)1000;
    len = ebpfMonZipkinWriteSpan(&json, &s, &conf, text, sizeof(text) - 1);
    text[len] = 0;
    testOk1(isJson(text, len) && strstr(text, "\"duration\":1,"));
    for (size_t size = 0; size < len; size += 5)
        if (ebpfMonZipkinWriteSpan(&json, &s, &conf, text, size))
            testFail("%u bytes are enough?", (unsigned)size);
}

static void exemplar(ebpfMonExemplars *all, const char *ioc, const char *root, unsigned us, uint8_t id)
{
    ebpfMonSpan s = {.start = 1000, .end = 1000 + 1000u * us, .latency = 1000u * us, .trace = {id}, .id = {id}};

    strcpy(s.service.name, ioc);
    strcpy(s.root, root);
    ebpfMonExemplarAdd(all, &s);
}

static void testExemplars(void)
{
    static ebpfMonExemplars all;
    const ebpfMonExemplar *e;
    unsigned kept = 0;
    char root[20];

    testDiag("exemplars");
    testOk1(!ebpfMonExemplarFind(&all, "", "", 10000) && !ebpfMonExemplarFind(&all, "a", "R", 10000));
    exemplar(&all, "a", "", 100, 9); /* no chain */
    testOk1(!ebpfMonExemplarFind(&all, "", "", 10000));
    exemplar(&all, "a", "R", 5, 1);
    exemplar(&all, "a", "R", 7, 2);
    exemplar(&all, "a", "R", 6, 3);
    exemplar(&all, "b", "R", 8, 4);
    exemplar(&all, "b", "Q", 9, 5);
    e = ebpfMonExemplarFind(&all, "a", "R", 10000);
    testOk(e && e->id[0] == 2 && e->trace[0] == 2 && e->value == 7 && e->time == 8000,
           "the exemplar is the slowest span of a root record");
    testOk1((e = ebpfMonExemplarFind(&all, "b", "R", 10000)) && e->id[0] == 4);
    testOk1((e = ebpfMonExemplarFind(&all, "", "R", 10000)) && e->id[0] == 4);
    testOk1((e = ebpfMonExemplarFind(&all, "", "", 10000)) && e->id[0] == 5);
    testOk1(!ebpfMonExemplarFind(&all, "c", "R", 10000));
    testOk((e = ebpfMonExemplarFind(&all, "", "", 9000)) && e->id[0] == 4 && !ebpfMonExemplarFind(&all, "b", "Q", 9000),
           "an exemplar is not given before its chain was counted");
    ebpfMonExemplarClear(&all, 9000);
    testOk((e = ebpfMonExemplarFind(&all, "", "", 10000)) && e->id[0] == 5 && all.used == 1,
           "… but it is given the next time");
    ebpfMonExemplarClear(&all, 10000);
    testOk1(!ebpfMonExemplarFind(&all, "", "", 10000) && !ebpfMonExemplarFind(&all, "a", "R", 10000));

    for (unsigned i = 0; i < 3 * EBPFMON_EXEMPLARS; i++) {
        sprintf(root, "R%u", i);
        exemplar(&all, "a", root, 1, 1);
    }
    for (unsigned i = 0; i < 3 * EBPFMON_EXEMPLARS; i++) {
        sprintf(root, "R%u", i);
        e = ebpfMonExemplarFind(&all, "a", root, 10000);
        kept += e && strcmp(e->root, root) == 0;
    }
    testOk(kept > EBPFMON_EXEMPLARS * 9 / 10 && kept <= EBPFMON_EXEMPLARS && all.used == kept,
           "a full list keeps its exemplars: %u of %u", kept, 3 * EBPFMON_EXEMPLARS);
}

MAIN(testSpan)
{
    testPlan(0);
    strcpy(conf.service, "ebpfMon");
    strcpy(conf.host, "thishost");
    ebpfMonOtlpPairsParse(&conf.resource, "host.name=h,service.instance.id=i,site=lab,service.name=no");
    testMaking();
    testPacking();
    testOtlp();
    testZipkin();
    testExemplars();
    ebpfMonJsonFree(&json);
    return testDone();
}
