/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of the logs: JSON, caPutLog's text, caPutLog's JSON; and puts that changed nothing. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "export/log/putLog.h"
#include "putTest.h"

static ebpfMonFormatter formatter;

static void expectLine(ebpfMonFormat format, const ebpfMonPut *put, const ebpfMonBurstInfo *burst, const char *want)
{
    static char buf[EBPFMON_LINE_MAX];
    size_t len = ebpfMonFormatPut(&formatter, format, put, burst, buf, sizeof(buf) - 1);

    buf[len] = 0;
    if (!testOk(strcmp(buf, want) == 0, "%s", want))
        testDiag("is: %s", buf);
}

static void testFormats(void)
{
    ebpfMonPut p = somePut(115);
    ebpfMonBurstInfo b = {.puts = 15, .hasRange = 1, .min = -1.5, .max = 1e300, .writers = 2,
                          .writer = {{.user = "alice", .host = "opi1", .count = 12},
                                     {.user = "bob", .host = "opi2", .count = 3}}};

    testDiag("formats");
    expectLine(ebpfMonFormatJson, &p, NULL, "{\"time\":\"2026-11-15T07:28:03.123456789Z\",\"pv\":\"VAC:SET\","
               "\"ioc\":\"vac1\",\"value\":115,\"old\":116,\"user\":\"alice\",\"host\":\"opi1\",\"through\":\"CA\","
               "\"result\":\"ok\",\"seen\":\"inside\"}");
    expectLine(ebpfMonFormatCaPutText, &p, NULL, "15-Nov-26 07:28:03 opi1 alice VAC:SET new=115 old=116");
    expectLine(ebpfMonFormatCaPutJson, &p, NULL, "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\",\"host\":\"opi1\","
               "\"user\":\"alice\",\"pv\":\"VAC:SET\",\"new\":115,\"old\":116}");
    expectLine(ebpfMonFormatCaPutText, &p, &b, "15-Nov-26 07:28:03 opi1 alice VAC:SET new=115 old=116 min=-1.5 "
               "max=1e+300 burst=15 by alice@opi1 (12), bob@opi2 (3)");
    expectLine(ebpfMonFormatCaPutJson, &p, &b, "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\",\"host\":\"opi1\","
               "\"user\":\"alice\",\"pv\":\"VAC:SET\",\"new\":115,\"old\":116,\"min\":-1.5,\"max\":1e+300,\"burst\":15,"
               "\"writers\":[{\"host\":\"opi1\",\"user\":\"alice\",\"count\":12},"
               "{\"host\":\"opi2\",\"user\":\"bob\",\"count\":3}]}");

    testDiag("a put with all members set");
    strcpy(p.channel, "VAC:SET.VAL");
    strcpy(p.after, "110");
    p.hash = 0xab;
    strcpy(p.peer, "127.0.0.1:5000");
    strcpy(p.server, "127.0.0.1:5064");
    strcpy(p.realUser, "root");
    p.peerPid = 77;
    p.peerUid = 0;
    strcpy(p.command, "caput");
    strcpy(p.container, "abc");
    p.through = ebpfMonByCaLink;
    strcpy(p.link, "A.OUT");
    strcpy(p.linkIoc, "b");
    strcpy(p.root, "R");
    strcpy(p.cause, "scan .1 second");
    strcpy(p.thread, "CAS-client");
    p.result = ebpfMonPutFailed;
    p.status = 5;
    strcpy(p.message, "no");
    p.seen = 3;
    p.unexpected = 1;
    strcpy(p.rule, "only ops");
    expectLine(ebpfMonFormatJson, &p, NULL, "{\"time\":\"2026-11-15T07:28:03.123456789Z\",\"pv\":\"VAC:SET\","
               "\"channel\":\"VAC:SET.VAL\",\"ioc\":\"vac1\",\"value\":115,\"old\":116,\"after\":\"110\","
               "\"hash\":\"00000000000000ab\",\"user\":\"alice\",\"host\":\"opi1\",\"peer\":\"127.0.0.1:5000\","
               "\"server\":\"127.0.0.1:5064\",\"real_user\":\"root\",\"pid\":77,\"uid\":0,\"command\":\"caput\","
               "\"container\":\"abc\",\"through\":\"CA link\",\"link\":\"A.OUT\",\"link_ioc\":\"b\",\"root\":\"R\","
               "\"cause\":\"scan .1 second\",\"thread\":\"CAS-client\",\"result\":\"failed\",\"status\":5,"
               "\"message\":\"no\",\"seen\":\"both\",\"unexpected\":true,\"rule\":\"only ops\"}");
    expectLine(ebpfMonFormatCaPutText, &p, NULL, "15-Nov-26 07:28:03 opi1 alice VAC:SET.VAL new=115 old=116 "
               "result=failed");
}

static void testRanges(void)
{
    ebpfMonPut p = somePut(115);
    ebpfMonBurstInfo b = {.puts = 15, .hasRange = 1, .writers = 1,
                          .writer = {{.user = "bob", .host = "opi2", .count = 15}}};

    testDiag("large numbers differ in their last digit");
    b.min = 1234567;
    b.max = 1234570.25;
    expectLine(ebpfMonFormatCaPutText, &p, &b, "15-Nov-26 07:28:03 opi1 alice VAC:SET new=115 old=116 min=1234567 "
               "max=1234570.25 burst=15 by bob@opi2 (15)");
    b.min = b.max = NAN;
    expectLine(ebpfMonFormatCaPutText, &p, &b, "15-Nov-26 07:28:03 opi1 alice VAC:SET new=115 old=116 min=nan "
               "max=nan burst=15 by bob@opi2 (15)");
}

/* The newest put, by which the line begins, says nothing about the others. */
static void testWriters(void)
{
    ebpfMonPut p = somePut(115);
    ebpfMonBurstInfo b = {.puts = 36, .writers = 4, .writer = {{"", "", 29, ebpfMonByLink, ""},
                          {"", "", 4, ebpfMonByShell, ""}, {"", "opi3", 2, ebpfMonByCa, "10.0.0.5:40312"},
                          {"alice", "opi1", 1, ebpfMonByCa, ""}}};

    testDiag("writers without a user");
    strcpy(formatter.host, "here");
    expectLine(ebpfMonFormatCaPutText, &p, &b, "15-Nov-26 07:28:03 opi1 alice VAC:SET new=115 old=116 burst=36 by "
               "link@here (29), shell@here (4), -@opi3 (2), alice@opi1 (1)");
    expectLine(ebpfMonFormatCaPutJson, &p, &b, "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\",\"host\":\"opi1\","
               "\"user\":\"alice\",\"pv\":\"VAC:SET\",\"new\":115,\"old\":116,\"burst\":36,"
               "\"writers\":[{\"host\":\"here\",\"user\":\"link\",\"count\":29},"
               "{\"host\":\"here\",\"user\":\"shell\",\"count\":4},{\"host\":\"opi3\",\"user\":\"-\",\"count\":2},"
               "{\"host\":\"opi1\",\"user\":\"alice\",\"count\":1}]}");
    expectLine(ebpfMonFormatJson, &p, &b, "{\"time\":\"2026-11-15T07:28:03.123456789Z\",\"pv\":\"VAC:SET\","
               "\"ioc\":\"vac1\",\"value\":115,\"old\":116,\"user\":\"alice\",\"host\":\"opi1\",\"through\":\"CA\","
               "\"result\":\"ok\",\"seen\":\"inside\",\"burst\":36,\"writers\":[{\"through\":\"link\",\"count\":29},"
               "{\"through\":\"shell\",\"count\":4},{\"host\":\"opi3\",\"through\":\"CA\",\"count\":2},"
               "{\"user\":\"alice\",\"host\":\"opi1\",\"count\":1}]}");
    formatter.host[0] = 0;
}

static void testValues(void)
{
    ebpfMonPut p = somePut(1);

    testDiag("values");
    formatter.labels.metas = 1;
    strcpy(formatter.labels.meta[0].key, "lab");
    strcpy(formatter.labels.meta[0].value, "B\"2");
    strcpy(formatter.labels.prefix, "fac=%i ");
    p.isNumber = p.oldIsNumber = 0;
    strcpy(p.val, "two\nlines \"and\" \\ \xc3\xa9");
    strcpy(p.old, "");
    strcpy(p.host, "my host");
    expectLine(ebpfMonFormatCaPutText, &p, NULL, "fac=vac1 15-Nov-26 07:28:03 my_host alice VAC:SET "
               "new=\"two\\\\x0alines \\\"and\\\" \\\\ \\xc3\\xa9\" old=\"\"");
    expectLine(ebpfMonFormatCaPutJson, &p, NULL, "fac=vac1 {\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\","
               "\"host\":\"my host\",\"user\":\"alice\",\"lab\":\"B\\\"2\",\"pv\":\"VAC:SET\","
               "\"new\":\"two\\\\x0alines \\\"and\\\" \\\\ \xc3\xa9\",\"old\":\"\"}");
    memset(&formatter.labels, 0, sizeof(formatter.labels));
    p = somePut(1);
    strcpy(p.val, "NaN");
    p.number = NAN;
    strcpy(p.old, "-inf");
    p.oldNumber = -INFINITY;
    expectLine(ebpfMonFormatCaPutJson, &p, NULL, "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\",\"host\":\"opi1\","
               "\"user\":\"alice\",\"pv\":\"VAC:SET\",\"new\":\"Nan\",\"old\":\"-Infinity\"}");
    expectLine(ebpfMonFormatCaPutText, &p, NULL, "15-Nov-26 07:28:03 opi1 alice VAC:SET new=nan old=-inf");
    strcpy(p.val, "0x10");
    p.number = 16;
    p.hasOld = 0;
    expectLine(ebpfMonFormatCaPutJson, &p, NULL, "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\",\"host\":\"opi1\","
               "\"user\":\"alice\",\"pv\":\"VAC:SET\",\"new\":16}");
    p = somePut(1);
    p.isNumber = p.oldIsNumber = 0;
    p.count = 3;
    strcpy(p.val, "[3] 1 2.5 NaN");
    p.oldCount = 0;
    strcpy(p.old, "[0]");
    expectLine(ebpfMonFormatCaPutJson, &p, NULL, "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\",\"host\":\"opi1\","
               "\"user\":\"alice\",\"pv\":\"VAC:SET\",\"new\":[1,2.5,\"Nan\"],\"new-size\":3,\"old\":[],"
               "\"old-size\":0}");
    p.count = 20;
    strcpy(p.val, "a long string");
    p.hasOld = 0;
    p.user[0] = p.host[0] = 0;
    strcpy(p.peer, "127.0.0.1:5000");
    strcpy(p.realUser, "bob");
    expectLine(ebpfMonFormatCaPutJson, &p, NULL, "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\","
               "\"host\":\"127.0.0.1:5000\",\"user\":\"bob\",\"pv\":\"VAC:SET\",\"new\":[\"a long string\"],"
               "\"new-size\":20}");
    p.count = 1;
    strcpy(p.val, "[3] not an array");
    expectLine(ebpfMonFormatCaPutText, &p, NULL, "15-Nov-26 07:28:03 127.0.0.1:5000 bob VAC:SET "
               "new=\"[3] not an array\"");
}

static void expectArray(const char *val, long count, int isText, const char *json)
{
    ebpfMonPut p = somePut(1);
    char want[1000];

    p.isNumber = p.hasOld = 0;
    p.isText = isText;
    p.count = count;
    strcpy(p.val, val);
    snprintf(want, sizeof(want), "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\",\"host\":\"opi1\","
             "\"user\":\"alice\",\"pv\":\"VAC:SET\",\"new\":%s,\"new-size\":%ld}", json, count);
    expectLine(ebpfMonFormatCaPutJson, &p, NULL, want);
}

static void testArrays(void)
{
    testDiag("arrays in caPutLog's JSON");
    expectArray("[2] 3 mm x", 2, 1, "[\"3 mm x\"]");
    expectArray("[2] 1 2", 2, 1, "[\"1 2\"]");
    expectArray("12", 3, 1, "[\"12\"]");
    expectArray("[2] \"3 mm\" \"x\"", 2, 0, "[\"\\\"3 mm\\\" \\\"x\\\"\"]");
    expectArray("[2] 1 maybe", 2, 0, "[\"1 maybe\"]");
    expectArray("[4] \"nan\" \"inf\" \"-inf\" 1e-07", 4, 0, "[\"Nan\",\"Infinity\",\"-Infinity\",1e-07]");
    expectArray("[4] NaN inf -inf 0.5", 4, 0, "[\"Nan\",\"Infinity\",\"-Infinity\",0.5]");
    expectArray("[20] 1 2 ...", 20, 0, "[1,2]");
    expectArray("[20] 1 2.5e-...", 20, 0, "[1]");
    expectArray("[2] \"a...", 2, 0, "[\"\\\"a...\"]");
    expectArray("[0]", 0, 1, "[]");
}

static void testLongest(void)
{
    ebpfMonPut p = somePut(1);
    char text[EBPFMON_LINE_MAX];
    size_t len;

    testDiag("the longest put");
    p.isNumber = p.oldIsNumber = 0;
    memset(p.val, 1, sizeof(p.val) - 1);
    memset(p.old, 0xff, sizeof(p.old) - 1);
    memset(p.user, 2, sizeof(p.user) - 1);
    memset(p.host, 3, sizeof(p.host) - 1);
    memset(p.after, 0x80, sizeof(p.after) - 1);
    len = ebpfMonFormatPut(&formatter, ebpfMonFormatJson, &p, NULL, text, sizeof(text));
    testOk(len > 6 * 511 + 2 * 3 * 511, "%u bytes of JSON", (unsigned)len);
    for (int f = ebpfMonFormatCaPutText; f <= ebpfMonFormatCaPutJson; f++) {
        ebpfMonBurstInfo b = {.puts = 900, .writers = EBPFMON_BURST_WRITERS, .others = 7};

        for (unsigned i = 0; i < b.writers; i++) {
            memset(b.writer[i].user, 'u', sizeof(b.writer[i].user) - 1);
            memset(b.writer[i].host, 'h', sizeof(b.writer[i].host) - 1);
            b.writer[i].count = 100;
        }
        len = ebpfMonFormatPut(&formatter, (ebpfMonFormat)f, &p, &b, text, sizeof(text));
        text[len] = 0;
        testOk(len > 100 && len <= EBPFMON_CAPUTLINE_MAX, "caPutLog: %u bytes", (unsigned)len);
        testOk1(strstr(text, f == ebpfMonFormatCaPutText ? "others (" : "\"others\":") != NULL);
    }
}

static void testChanges(void)
{
    ebpfMonPut p = somePut(5);

    testDiag("changes");
    testOk1(!ebpfMonPutLogIsUnchanged(&p));
    p.oldNumber = 5;
    strcpy(p.old, "5.0");
    testOk1(ebpfMonPutLogIsUnchanged(&p));
    p.result = ebpfMonPutDenied;
    testOk1(!ebpfMonPutLogIsUnchanged(&p));
    p.result = ebpfMonPutOk;
    p.hasOld = 0;
    testOk1(!ebpfMonPutLogIsUnchanged(&p));
    p.hasOld = 1;
    p.isNumber = 0;
    strcpy(p.val, "[99] 1 2 ...");
    strcpy(p.old, p.val);
    testOk(!ebpfMonPutLogIsUnchanged(&p), "arrays with a known beginning only");
    strcpy(p.val, "Open");
    strcpy(p.old, p.val);
    testOk1(ebpfMonPutLogIsUnchanged(&p));
}

MAIN(testPutLogFormat)
{
    testPlan(0);
    setenv("TZ", "UTC", 1); /* caPutLog's times are local */
    tzset();
    testFormats();
    testRanges();
    testWriters();
    testValues();
    testArrays();
    testLongest();
    testChanges();
    ebpfMonFormatterFree(&formatter);
    return testDone();
}
