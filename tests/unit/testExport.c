/* SPDX-License-Identifier: BSD-3-Clause */
/* The logs: formats, files, log servers (Base's own iocLogServer), the burst filter, and that nothing is lost silently.
 * As root in a network and a mount namespace of its own: a disk that is full is a small tmpfs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare */
#endif
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <epicsThread.h>
#include <epicsTime.h>
#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "export/log/burst.h"
#include "export/export.h"
#include "export/log/format.h"
#include "export/jsonGen.h"
#include "export/putPack.h"
#include "model/published.h"
#include "model/logOps.h"

#define DEADLINE 20.0 /* s */

static char dir[128];
static int alone; /* namespaces of our own */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nonzero when the condition came within the deadline. */
static int until(int (*condition)(const void *), const void *arg)
{
    double end = seconds() + DEADLINE;

    while (!condition(arg)) {
        if (seconds() > end)
            return 0;
        epicsThreadSleep(0.01);
    }
    return 1;
}

static ebpfMonPut somePut(unsigned number)
{
    ebpfMonPut p = {
        .count = 1, .oldCount = 1, .hasOld = 1, .isNumber = 1, .oldIsNumber = 1, .number = number,
        .oldNumber = number + 1, .through = ebpfMonByCa, .result = ebpfMonPutOk, .seen = EBPFMON_SEEN_INSIDE,
    };

    p.time.secPastEpoch = 1163575683u; /* 2026-11-15 07:28:03 UTC */
    p.time.nsec = 123456789;
    strcpy(p.ioc, "vac1");
    strcpy(p.pv, "VAC:SET");
    sprintf(p.val, "%u", number);
    sprintf(p.old, "%u", number + 1);
    strcpy(p.user, "alice");
    strcpy(p.host, "opi1");
    return p;
}

/* --- formats ---------------------------------------------------------------------------------------------- */

static ebpfMonFormatMore more;

static void expectLine(ebpfMonFormat format, const ebpfMonPut *put, const ebpfMonBurstInfo *burst, const char *want)
{
    static char buf[EBPFMON_LINE_MAX];
    size_t len = ebpfMonFormatPut(format, put, burst, &more, buf, sizeof(buf) - 1);

    buf[len] = 0;
    if (!testOk(strcmp(buf, want) == 0, "%s", want))
        testDiag("is: %s", buf);
}

static void testFormats(void)
{
    ebpfMonPut p = somePut(115);
    ebpfMonBurstInfo b = {.puts = 15, .hasRange = 1, .min = -1.5, .max = 1e300, .writers = 2,
                          .writer = {{"alice", "opi1", 12}, {"bob", "opi2", 3}}};

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

    testDiag("all that is known");
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

static void testValues(void)
{
    static const char *const hostile[] = {
        "a\x80z", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xc3\xa9\xe2\x86\x92\xf0\x9f\x98\x80",
    };
    static const char *const clean[] = {
        "a\xef\xbf\xbdz", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
        "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd",
        "\xc3\xa9\xe2\x86\x92\xf0\x9f\x98\x80",
    };
    ebpfMonPut p = somePut(1);
    char text[EBPFMON_LINE_MAX];
    size_t len;

    testDiag("values");
    for (unsigned i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        ebpfMonUtf8(text, sizeof(text), hostile[i]);
        testOk(strcmp(text, clean[i]) == 0, "UTF-8 %u", i);
    }
    testOk1(ebpfMonIsJsonNumber("-0.5e-07", 8) && ebpfMonIsJsonNumber("0", 1) && ebpfMonIsJsonNumber("10", 2));
    testOk1(!ebpfMonIsJsonNumber("01", 2) && !ebpfMonIsJsonNumber("0x10", 4) && !ebpfMonIsJsonNumber("1.", 2) &&
            !ebpfMonIsJsonNumber("nan", 3) && !ebpfMonIsJsonNumber("", 0) && !ebpfMonIsJsonNumber("1e", 2) &&
            !ebpfMonIsJsonNumber("-", 1) && !ebpfMonIsJsonNumber("1 ", 2));

    more.metas = 1;
    strcpy(more.meta[0].key, "lab");
    strcpy(more.meta[0].value, "B\"2");
    strcpy(more.prefix, "fac=%i ");
    p.isNumber = p.oldIsNumber = 0;
    strcpy(p.val, "two\nlines \"and\" \\ \xc3\xa9");
    strcpy(p.old, "");
    strcpy(p.host, "my host");
    expectLine(ebpfMonFormatCaPutText, &p, NULL, "fac=vac1 15-Nov-26 07:28:03 my_host alice VAC:SET "
               "new=\"two\\nlines \\\"and\\\" \\\\ \\xc3\\xa9\" old=\"\"");
    expectLine(ebpfMonFormatCaPutJson, &p, NULL, "fac=vac1 {\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\","
               "\"host\":\"my host\",\"user\":\"alice\",\"lab\":\"B\\\"2\",\"pv\":\"VAC:SET\","
               "\"new\":\"two\\nlines \\\"and\\\" \\\\ \xc3\xa9\",\"old\":\"\"}");
    memset(&more, 0, sizeof(more));
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

    testDiag("the longest");
    p = somePut(1);
    p.isNumber = p.oldIsNumber = 0;
    memset(p.val, 1, sizeof(p.val) - 1);
    memset(p.old, 0xff, sizeof(p.old) - 1);
    memset(p.user, 2, sizeof(p.user) - 1);
    memset(p.host, 3, sizeof(p.host) - 1);
    memset(p.after, 0x80, sizeof(p.after) - 1);
    len = ebpfMonFormatPut(ebpfMonFormatJson, &p, NULL, &more, text, sizeof(text));
    testOk(len > 6 * 511 + 2 * 3 * 511, "%u bytes of JSON", (unsigned)len);
    for (int f = ebpfMonFormatCaPutText; f <= ebpfMonFormatCaPutJson; f++) {
        ebpfMonBurstInfo b = {.puts = 900, .writers = EBPFMON_BURST_WRITERS, .others = 7};

        for (unsigned i = 0; i < b.writers; i++) {
            memset(b.writer[i].user, 'u', sizeof(b.writer[i].user) - 1);
            memset(b.writer[i].host, 'h', sizeof(b.writer[i].host) - 1);
            b.writer[i].count = 100;
        }
        len = ebpfMonFormatPut((ebpfMonFormat)f, &p, &b, &more, text, sizeof(text));
        text[len] = 0;
        testOk(len > 100 && len <= EBPFMON_CAPUTLINE_MAX, "caPutLog: %u bytes", (unsigned)len);
        testOk1(strstr(text, f == ebpfMonFormatCaPutText ? "others (" : "\"others\":") != NULL);
    }

    testDiag("changes");
    p = somePut(5);
    testOk1(!ebpfMonPutUnchanged(&p));
    p.oldNumber = 5;
    strcpy(p.old, "5.0");
    testOk1(ebpfMonPutUnchanged(&p));
    p.result = ebpfMonPutDenied;
    testOk1(!ebpfMonPutUnchanged(&p));
    p.result = ebpfMonPutOk;
    p.hasOld = 0;
    testOk1(!ebpfMonPutUnchanged(&p));
    p.hasOld = 1;
    p.isNumber = 0;
    strcpy(p.val, "[99] 1 2 ...");
    strcpy(p.old, p.val);
    testOk(!ebpfMonPutUnchanged(&p), "arrays of which only the beginning is known");
    strcpy(p.val, "Open");
    strcpy(p.old, p.val);
    testOk1(ebpfMonPutUnchanged(&p));
}

static void testPack(void)
{
    static ebpfMonPut p, q;
    static uint8_t buf[EBPFMON_PACK_MAX];
    size_t len;
    ebpfMonPut small = somePut(1);

    memset(&p, 0x41, sizeof(p)); /* texts without an end, too */
    len = ebpfMonPutPack(&p, buf);
    ebpfMonPutUnpack(buf, len, &q);
    testOk(len <= sizeof(buf) && strlen(q.val) == sizeof(q.val) - 1 && strlen(q.rule) == sizeof(q.rule) - 1 &&
           q.number == p.number && q.peerUid == p.peerUid, "the largest put: %u bytes", (unsigned)len);
    len = ebpfMonPutPack(&small, buf);
    ebpfMonPutUnpack(buf, len, &q);
    testOk(len < 200 && strcmp(q.pv, small.pv) == 0 && strcmp(q.host, "opi1") == 0 && !q.rule[0] &&
           q.time.nsec == 123456789 && q.oldCount == 1, "a usual put: %u bytes", (unsigned)len);
}

/* --- bursts ----------------------------------------------------------------------------------------------- */

static struct {
    char pv[EBPFMON_NAME_SIZE], val[32], old[32];
    int summary;
    ebpfMonBurstInfo info;
} emitted[100];
static unsigned emits;

static void onEmit(void *arg, const ebpfMonPut *put, const ebpfMonBurstInfo *info)
{
    if (emits == 100)
        return;
    strcpy(emitted[emits].pv, put->pv);
    strcpy(emitted[emits].val, put->val);
    strcpy(emitted[emits].old, put->old);
    emitted[emits].summary = info != NULL;
    if (info)
        emitted[emits].info = *info;
    emits++;
}

static int burstPut(ebpfMonBurst *b, const char *pv, int value, int old, const char *user, double now)
{
    ebpfMonPut p = somePut(0);

    strcpy(p.pv, pv);
    p.number = value;
    sprintf(p.val, "%d", value);
    sprintf(p.old, "%d", old);
    strcpy(p.user, user);
    return ebpfMonBurstPut(b, &p, now);
}

static void testBurst(void)
{
    ebpfMonBurst *b = ebpfMonBurstCreate(4, 5, 30, onEmit, NULL);
    char name[16];

    testDiag("bursts: two PVs by turns, three writers");
    for (int i = 0; i < 10; i++) {
        burstPut(b, "A", i == 3 ? -7 : i, i == 0 ? 42 : i - 1, i % 3 ? "alice" : "bob", i * 0.1);
        burstPut(b, "B", 100 - i, 100, i == 9 ? "carol" : "bob", i * 0.1);
    }
    testOk(emits == 2 && !emitted[0].summary && strcmp(emitted[0].val, "0") == 0 && !emitted[1].summary,
           "the first of each at once: %u", emits);
    ebpfMonBurstTick(b, 5.8);
    testOk(emits == 2, "not yet over");
    ebpfMonBurstTick(b, 6.0);
    testOk1(emits == 4 && emitted[2].summary && strcmp(emitted[2].pv, "A") == 0 && strcmp(emitted[3].pv, "B") == 0);
    testOk(strcmp(emitted[2].val, "9") == 0 && strcmp(emitted[2].old, "42") == 0 && emitted[2].info.puts == 10 &&
           emitted[2].info.min == -7 && emitted[2].info.max == 9 && emitted[2].info.hasRange,
           "first old %s, last new %s, %lu puts, %g … %g", emitted[2].old, emitted[2].val, emitted[2].info.puts,
           emitted[2].info.min, emitted[2].info.max);
    testOk1(emitted[2].info.writers == 2 && strcmp(emitted[2].info.writer[0].user, "bob") == 0 &&
            emitted[2].info.writer[0].count == 4 && emitted[2].info.writer[1].count == 6);
    testOk1(emitted[3].info.writers == 2 && emitted[3].info.writer[0].count == 9 &&
            emitted[3].info.writer[1].count == 1);

    testDiag("a single put is a single line; bursts end after 30 s; when there are many PVs; at the end");
    emits = 0;
    burstPut(b, "A", 1, 0, "a", 10);
    ebpfMonBurstTick(b, 16);
    testOk1(emits == 1);
    emits = 0;
    for (int i = 0; i <= 31; i++)
        testOk(burstPut(b, "A", i, 0, "a", 20 + i) == (i == 0 || i == 30), "put %d", i);
    testOk1(emits == 3 && emitted[1].summary && emitted[1].info.puts == 30 && !emitted[2].summary);
    emits = 0;
    for (int i = 0; i < 4; i++) { /* A and three more fit; the fourth ends A's */
        sprintf(name, "C%d", i);
        burstPut(b, name, 1, 0, "a", 52);
    }
    testOk(emits == 5 && strcmp(emitted[4].pv, "A") == 0 && emitted[4].info.puts == 2, "the quietest ends: %u", emits);
    emits = 0;
    for (int i = 0; i < 12; i++) {
        sprintf(name, "u%d", i);
        burstPut(b, "C0", 1, 0, name, 53);
    }
    ebpfMonBurstDestroy(b);
    testOk(emits == 1 && emitted[0].info.puts == 13 && emitted[0].info.writers == EBPFMON_BURST_WRITERS &&
           emitted[0].info.others == 5, "many writers: %lu others", emitted[0].info.others);
}

/* --- files ------------------------------------------------------------------------------------------------ */

static uint64_t linesBefore, lostBefore;

static uint64_t written(void)
{
    uint64_t n = ebpfMonPublishedLock()->log.written;

    ebpfMonPublishedUnlock();
    return n - linesBefore;
}

static uint64_t lost(void)
{
    uint64_t n = ebpfMonPublishedLock()->log.lost;

    ebpfMonPublishedUnlock();
    return n - lostBefore;
}

static void begin(void)
{
    linesBefore += written();
    lostBefore += lost();
}

static int inTrouble(const void *text)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    int is = published->log.state == ebpfMonLogTrouble && strstr(published->log.message, text);

    ebpfMonPublishedUnlock();
    return is;
}

static int fine(const void *unused)
{
    int is = ebpfMonPublishedLock()->log.state == ebpfMonLogOk;

    ebpfMonPublishedUnlock();
    return is;
}

static int wroteMany(const void *number)
{
    return written() >= *(const uint64_t *)number;
}

static void writeUntil(uint64_t number)
{
    testOk(until(wroteMany, &number), "%" PRIu64 " lines written, %" PRIu64 " wanted", written(), number);
}

static const char *at(const char *name)
{
    static char path[4][256];
    static unsigned n;

    n = (n + 1) % 4;
    snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
    return path[n];
}

static char *contents(const char *path, size_t *len)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    struct stat st;

    *len = 0;
    if (!f)
        return NULL;
    if (fstat(fileno(f), &st) == 0 && (text = malloc((size_t)st.st_size + 1)) != NULL) {
        *len = fread(text, 1, (size_t)st.st_size, f);
        text[*len] = 0;
    }
    fclose(f);
    return text;
}

/* Marks in seen[] the numbers of the lines "pv":"P<number>"; how many whole lines there are, -1 when one is not. */
static int readLines(const char *path, unsigned char *seen, unsigned size)
{
    size_t len;
    char *text = contents(path, &len), *line = text, *end;
    int n = 0;

    if (!text)
        return 0;
    while ((end = strchr(line, '\n')) && n >= 0) {
        char *pv = strstr(line, "\"pv\":\"P");
        unsigned number;

        *end = 0;
        if (line[0] != '{' || end[-1] != '}' || strstr(line + 1, "{\"time\"")) {
            testDiag("%s: %s", path, line);
            n = -2;
        } else if (pv && sscanf(pv + 7, "%u", &number) == 1 && number < size && seen) {
            seen[number]++;
        }
        n++;
        line = end + 1;
    }
    if (n >= 0 && *line)
        n = -1;
    free(text);
    return n;
}

static void putNumber(unsigned number)
{
    ebpfMonPut p = somePut(number);

    sprintf(p.pv, "P%u", number);
    ebpfMonExportPut(&p);
}

static long jsonLog(const char *file, double maxMB, double hours, int keep)
{
    return ebpfMonLogOpsGet()->json(at(file), maxMB, hours, keep, ebpfMonLogAll);
}

static int hasFile(const void *path)
{
    return access(path, F_OK) == 0;
}

static int grown(const void *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size > 0;
}

static void testFiles(void)
{
    enum { N = 3000 };
    static unsigned char seen[N];
    char name[32];
    unsigned missing = 0, others = 0;
    int whole = 0, files = 0;
    struct stat st;

    testDiag("rotation by size");
    begin();
    putNumber(0); /* no log: nowhere */
    testOk1(jsonLog("size.json", 0.05, 0, 20) == 0);
    for (unsigned i = 0; i < N; i++)
        putNumber(i);
    ebpfMonExportStop(10);
    testOk(written() == N && lost() == 0, "%" PRIu64 " lines written", written());
    for (int i = 0; i < 25; i++) {
        snprintf(name, sizeof(name), i ? "size.json.%d" : "size.json", i);
        if (stat(at(name), &st) == 0) {
            int n = readLines(at(name), seen, N);

            files++;
            if (n < 0 || st.st_size > 50000)
                testFail("%s: %d lines, %ld bytes", name, n, (long)st.st_size);
            whole += n;
        }
    }
    for (unsigned i = 0; i < N; i++)
        missing += seen[i] != 1;
    testOk(whole == N && !missing && files > 5, "%d whole lines in %d files, %u missing or twice", whole, files,
           missing);

    testDiag("rotation on request, by age, by others; keep");
    begin();
    testOk1(jsonLog("asked.json", 0, 0, 2) == 0);
    for (unsigned i = 0; i < 4; i++) {
        putNumber(i);
        writeUntil(i + 1);
        testOk1(ebpfMonLogOpsGet()->rotate() == 0);
        if (i < 2) {
            snprintf(name, sizeof(name), "asked.json.%u", i + 1);
            testOk(until(hasFile, at(name)), "%s", name);
        }
    }
    putNumber(4);
    writeUntil(5);
    testOk1(!hasFile(at("asked.json.3")));
    testOk1(readLines(at("asked.json"), NULL, 0) == 1 && readLines(at("asked.json.1"), NULL, 0) == 1);
    rename(at("asked.json"), at("moved"));
    testOk(until(hasFile, at("asked.json")), "made again");
    putNumber(5);
    testOk(until(grown, at("asked.json")), "and written");
    rename(at("asked.json"), at("moved"));
    close(open(at("asked.json"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    {
        double end = seconds() + DEADLINE;

        while (!grown(at("asked.json")) && seconds() < end) {
            ebpfMonPut p = somePut(1000);

            others++;
            ebpfMonExportPut(&p);
            epicsThreadSleep(0.05);
        }
    }
    testOk(grown(at("asked.json")), "replaced by another, which is written then");
    testOk1(jsonLog("asked.json", 0, 0.1 / 3600, 2) == 0); /* another age for the same log */
    unlink(at("asked.json.1"));
    putNumber(6);
    testOk(until(hasFile, at("asked.json.1")), "rotated by age");
    ebpfMonExportStop(10);
    testOk(written() == 7 + others && lost() == 0, "%" PRIu64 " lines", written());

    testDiag("a line without its end, of a monitor that was killed");
    begin();
    {
        FILE *f = fopen(at("asked.json"), "w");

        fputs("{\"half", f);
        fclose(f);
    }
    jsonLog("asked.json", 0, 0, 0);
    putNumber(7);
    writeUntil(1);
    ebpfMonExportStop(10);
    {
        size_t len;
        char *text = contents(at("asked.json"), &len);

        testOk(strncmp(text, "{\"half\n{\"time", 13) == 0, "%.20s", text);
        free(text);
    }

    testDiag("refused");
    eltc(0);
    testOk1(ebpfMonLogOpsGet()->json(dir, 0, 0, 0, ebpfMonLogAll) != 0);
    testOk1(jsonLog("x", -1, 0, 0) != 0 && jsonLog("x", NAN, 0, 0) != 0 && jsonLog("x", 0, 0, 5000) != 0);
    testOk1(ebpfMonLogOpsGet()->caPutLog("no such host", 0, ebpfMonLogAll, "") != 0);
    testOk1(ebpfMonLogOpsGet()->metadata("pv", "x") != 0);
    testOk1(ebpfMonLogOpsGet()->rotate() != 0);
    jsonLog("twice", 0, 0, 0);
    testOk1(ebpfMonLogOpsGet()->caPutLog(at("twice"), 0, ebpfMonLogAll, "") != 0);
    ebpfMonExportStop(10);
    eltc(1);
}

static void testTrouble(void)
{
    enum { N = 20000 };
    static unsigned char seen[N];
    unsigned produced = 0, missing = 0;
    uint64_t told = 0;
    size_t len;
    char *text, *mark;
    int n, fd;
    char *filler = calloc(1, 300000);

    eltc(0);
    testDiag("a file that cannot be opened, later can");
    begin();
    testOk1(jsonLog("no/such.json", 0, 0, 0) == 0);
    putNumber(0);
    testOk1(until(inTrouble, "cannot open"));
    mkdir(at("no"), 0755);
    writeUntil(1);
    testOk1(until(fine, NULL));
    ebpfMonExportStop(10);
    testOk1(readLines(at("no/such.json"), NULL, 0) == 1 && lost() == 0);

    testDiag("/dev/full");
    begin();
    testOk1(ebpfMonLogOpsGet()->json("/dev/full", 0.001, 0, 3, ebpfMonLogAll) == 0);
    for (unsigned i = 0; i < 100; i++)
        putNumber(i);
    testOk1(until(inTrouble, "disk full"));
    ebpfMonExportStop(1);
    testOk(lost() == 100 && written() == 0, "%" PRIu64 " lost", lost());

    testDiag("a full disk");
    begin();
    if (!alone || mkdir(at("disk"), 0755) || mount("none", at("disk"), "tmpfs", 0, "size=400k")) {
        testSkip(6, "needs the right to mount");
    } else {
        fd = open(at("disk/filler"), O_WRONLY | O_CREAT, 0644);
        if (write(fd, filler, 300000) != 300000)
            testDiag("filler: %s", strerror(errno));
        close(fd);
        testOk1(jsonLog("disk/full.json", 0, 0, 0) == 0);
        for (; produced < 4000; produced++)
            putNumber(produced);
        testOk1(until(inTrouble, "disk full"));
        text = contents(at("disk/full.json"), &len);
        testOk(text && len && text[len - 1] == '\n', "no half line on the full disk (%u bytes)", (unsigned)len);
        free(text);
        unlink(at("disk/filler"));
        testOk1(until(fine, NULL));
        for (; produced < 4100; produced++)
            putNumber(produced);
        ebpfMonExportStop(10);
        n = readLines(at("disk/full.json"), seen, N);
        for (unsigned i = 0; i < produced; i++)
            missing += !seen[i];
        text = contents(at("disk/full.json"), &len);
        mark = strstr(text, "\"lost\":");
        if (mark)
            sscanf(mark + 7, "%" SCNu64, &told);
        testOk(n > 0 && missing == lost() && told == lost() && lost() > 100, "%d whole lines, %u missing, %" PRIu64
               " counted, %" PRIu64 " told in the file", n, missing, lost(), told);
        /* one line is no put: the one that tells */
        testOk(written() - 1 + lost() == produced, "%" PRIu64 " + %" PRIu64 " of %u", written() - 1, lost(), produced);
        free(text);
        umount(at("disk"));
    }
    eltc(1);
    free(filler);
}

/* --- servers ---------------------------------------------------------------------------------------------- */

static pid_t server;
static char serverFile[256];
static int serverPort;

static void startServer(void)
{
    char port[16];

    snprintf(port, sizeof(port), "%d", serverPort);
    server = fork();
    if (server == 0) {
        setenv("EPICS_IOC_LOG_PORT", port, 1);
        setenv("EPICS_IOC_LOG_FILE_NAME", serverFile, 1);
        setenv("EPICS_IOC_LOG_FILE_LIMIT", "100000000", 1);
        execl(IOC_LOG_SERVER, "iocLogServer", NULL);
        _exit(127);
    }
}

static void killServer(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}

static unsigned serverFrom, serverTo;

/* Every line of the range, whole. */
static int serverHasAll(const void *tellMissing)
{
    unsigned missing = 0;
    char want[128];
    size_t len;
    char *text = contents(serverFile, &len);

    for (unsigned i = serverFrom; i < serverTo && text; i++) {
        snprintf(want, sizeof(want), " 15-Nov-26 07:28:03 opi1 alice P%u new=%u old=%u\n", i, i, i + 1);
        missing += !strstr(text, want);
    }
    free(text);
    if (tellMissing && missing)
        testDiag("%u missing", missing);
    return text && !missing;
}

static void testServer(void)
{
    char target[64];
    unsigned n = 0;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(addr);
    int deaf = socket(AF_INET, SOCK_STREAM, 0);
    double since;

    testDiag("iocLogServer");
    if (access(IOC_LOG_SERVER, X_OK) != 0 || bind(deaf, (struct sockaddr *)&addr, size) || listen(deaf, 4) ||
        getsockname(deaf, (struct sockaddr *)&addr, &size)) {
        testSkip(13, "no iocLogServer in this Base, or no network");
        return;
    }
    serverPort = 20000 + getpid() % 10000;
    snprintf(serverFile, sizeof(serverFile), "%s", at("server.log"));
    snprintf(target, sizeof(target), "127.0.0.1:%d", serverPort);
    begin();
    eltc(0);
    testOk1(ebpfMonLogOpsGet()->caPutLog(target, 0, ebpfMonLogAll, "") == 0);
    for (; n < 200; n++)
        putNumber(n);
    testOk(until(inTrouble, "server down"), "down is a state");
    startServer();
    serverTo = n;
    testOk(until(serverHasAll, NULL), "it has all that came before it");
    testOk1(until(fine, NULL));
    for (int round = 0; round < 2; round++) {
        killServer();
        for (unsigned end = n + 500; n < end; n++)
            putNumber(n);
        testOk1(until(inTrouble, "server down"));
        startServer();
        serverTo = n;
        testOk(until(serverHasAll, NULL), "killed, and begun again: it has all of %u", n);
    }
    testOk(serverHasAll("") && lost() == 0 && written() == n, "%" PRIu64 " lines", written());

    testDiag("a server that does not read holds nobody up");
    snprintf(target, sizeof(target), "127.0.0.1:%d", ntohs(addr.sin_port));
    testOk1(ebpfMonLogOpsGet()->caPutLog(target, 1, ebpfMonLogAll, "") == 0);
    testOk1(jsonLog("beside.json", 0, 0, 0) == 0);
    serverFrom = n;
    for (unsigned end = n + 60000; n < end; n++) {
        if (n % 10000 == 0)
            epicsThreadSleep(0.3); /* the queue is not what is tested here */
        putNumber(n);
    }
    serverFrom = n - 50;
    serverTo = n;
    testOk1(until(serverHasAll, NULL));
    testOk1(until(inTrouble, "too slow"));
    since = seconds();
    ebpfMonExportStop(2);
    testOk(seconds() - since < 3, "the end does not wait for it: %.1f s", seconds() - since);
    /* three logs; what the deaf one did not confirm is lost, and counted */
    testOk(written() + lost() >= 1200 + 3 * 60000 && lost() > 1000, "%" PRIu64 " + %" PRIu64, written(), lost());
    eltc(1);
    killServer();
    close(deaf);
}

/* --- how fast, and no loss is silent ------------------------------------------------------------------------ */

static void testLoad(void)
{
    enum { N = 400000, FIT = 50000 };
    ebpfMonPut p = somePut(1);
    double t, putNs = 0, all;

    testDiag("more than the queue holds");
    strcpy(p.peer, "127.0.0.1:50123");
    strcpy(p.server, "127.0.0.1:5064");
    strcpy(p.realUser, "alice");
    strcpy(p.command, "caput");
    strcpy(p.thread, "CAS-client");
    p.peerPid = 4711;
    begin();
    t = seconds();
    for (unsigned i = 0; i < N; i++)
        ebpfMonExportPut(&p);
    testDiag("%.1f ns a put without a log", (seconds() - t) * 1e9 / N);
    eltc(0);
    jsonLog("load.json", 0, 0, 0);
    t = seconds();
    for (unsigned i = 0; i < N; i++) {
        ebpfMonExportPut(&p);
        if (i == FIT - 1)
            putNs = (seconds() - t) * 1e9 / FIT; /* later ones may find the queue full, which costs less */
    }
    ebpfMonExportStop(30);
    all = seconds() - t;
    eltc(1);
    testOk(written() + lost() == N, "%" PRIu64 " written + %" PRIu64 " lost of %d", written(), lost(), N);
    testDiag("%.0f ns a put, %.0f JSON lines a second written", putNs, (double)written() / all);

    testDiag("one hundred thousand a second");
    begin();
    jsonLog("load2.json", 0, 0, 0);
    t = seconds();
    for (unsigned i = 0; i < 100000; i++) {
        while ((double)i > (seconds() - t) * 100000)
            ;
        ebpfMonExportPut(&p);
    }
    ebpfMonExportStop(30);
    testOk(written() + lost() == 100000, "%" PRIu64 " written + %" PRIu64 " lost", written(), lost());
}

static void testBurstLog(void)
{
    ebpfMonPut p = somePut(0);
    uint64_t n;

    testDiag("mode burst to the PV and a file; the end ends bursts");
    begin();
    ebpfMonLogOpsGet()->metadata("lab", "B2");
    testOk1(ebpfMonLogOpsGet()->caPutLog("PV", 1, ebpfMonLogAll, "") == 0);
    testOk1(ebpfMonLogOpsGet()->caPutLog(at("burst.log"), 0, ebpfMonLogBurst, "%i ") == 0);
    for (unsigned i = 0; i < 100; i++) {
        p = somePut(i);
        strcpy(p.pv, i % 2 ? "A" : "B");
        ebpfMonExportPut(&p);
    }
    ebpfMonExportStop(5);
    n = written();
    testOk(n == 4, "%" PRIu64 " lines: two first puts, two summaries", n);
    testOk(strcmp(ebpfMonPublishedLock()->log.caPutLogLine, "{\"date\":\"2026-11-15\",\"time\":\"07:28:03.123\","
                  "\"host\":\"opi1\",\"user\":\"alice\",\"lab\":\"B2\",\"pv\":\"A\",\"new\":99,\"old\":100}") == 0,
           "the PV");
    ebpfMonPublishedUnlock();
    {
        size_t len;
        char *text = contents(at("burst.log"), &len);

        testOk1(text && strstr(text, "vac1 15-Nov-26 07:28:03 opi1 alice A new=99 old=2 min=1 max=99 burst=50 by "
                               "alice@opi1 (50)\n"));
        free(text);
    }
}

/* Namespaces of our own, with a loopback interface. */
static void retire(void)
{
    struct ifreq ifr = {.ifr_name = "lo"};
    int fd;

    if (unshare(CLONE_NEWNS | CLONE_NEWNET) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return;
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    ifr.ifr_flags = IFF_UP | IFF_RUNNING;
    alone = ioctl(fd, SIOCSIFFLAGS, &ifr) == 0;
    close(fd);
}

static void removeAll(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    char name[600];

    while (d && (e = readdir(d))) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        if (unlink(name))
            removeAll(name);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

MAIN(testExport)
{
    testPlan(0);
    setenv("TZ", "UTC", 1); /* caPutLog's times are local */
    tzset();
    retire();
    snprintf(dir, sizeof(dir), "%s/testExport-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(dir))
        testAbort("no folder for the test: %s", strerror(errno));
    testFormats();
    testValues();
    testPack();
    testBurst();
    ebpfMonExportRegister();
    testFiles();
    testTrouble();
    testServer();
    testBurstLog();
    testLoad();
    removeAll(dir);
    return testDone();
}
