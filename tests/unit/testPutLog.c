/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "logTest.h"
#include "export/log/putLogs.h"
#include "export/log/putLog.h"
#include "putTest.h"

/* --- PutLog --- */

/* One log, without its thread: modes, the PV, losses; and the logs of a process as an object. Times are invented. */

static const ebpfMonFormatLabels labels;

static ebpfMonPutLog *newLog(ebpfMonPutLogKind kind, ebpfMonFormat format, ebpfMonLogMode mode, const char *target)
{
    ebpfMonPutLog *log = calloc(1, sizeof(*log));
    ebpfMonPutLogConf conf = {.kind = kind, .format = format, .mode = mode};

    strcpy(conf.target, target);
    ebpfMonPutLogConfigure(log, &conf, &labels, 1);
    return log;
}

static void addPut(ebpfMonPutLog *log, unsigned value, unsigned old, double now)
{
    ebpfMonPut p = somePut(value);

    p.oldNumber = old;
    sprintf(p.old, "%u", old);
    ebpfMonPutLogAddPut(log, &p, now);
}

static int isUnchanged(const char *val, const char *old)
{
    ebpfMonPut p = somePut(0);

    strcpy(p.val, val);
    strcpy(p.old, old);
    p.number = strtod(val, NULL);
    p.oldNumber = strtod(old, NULL);
    return ebpfMonPutLogIsUnchanged(&p);
}

/* As doubles, the numbers of each line are equal. */
static void testLargeNumbers(void)
{
    testDiag("64-bit integers that a double cannot tell apart");
    testOk(!isUnchanged("9007199254740993", "9007199254740992"), "2^53 + 1 is not 2^53");
    testOk(!isUnchanged("-9223372036854775807", "-9223372036854775808"), "INT64 differs in its lowest bit");
    testOk(!isUnchanged("18446744073709551615", "18446744073709551614"), "UINT64 differs in its lowest bit");
    testOk(!isUnchanged("1e+17", "100000000000000001"), "a double is sent to an INT64 that has another value");
    testOk(isUnchanged("18446744073709551615", "18446744073709551615"), "the same UINT64");
    testOk(isUnchanged("1e+17", "100000000000000000") && isUnchanged("9.2233720368547758e+18", "9223372036854775808"),
           "the same number in another form");
    testOk(isUnchanged("1e300", "1e+300") && isUnchanged("1.50", "1.5") && isUnchanged("nan", "nan"), "other numbers");
}

static void testModes(void)
{
    ebpfMonPutLog *log = newLog(ebpfMonPutLogPv, ebpfMonFormatCaPutText, ebpfMonLogChanges, "PV");
    ebpfMonPutLogConf burst = log->conf;

    testDiag("modes, on the PV");
    addPut(log, 1, 1, 1);
    testOk1(log->counts.skipped == 1 && !log->changed);
    addPut(log, 2, 1, 1);
    testOk(log->changed && strstr(log->last, " VAC:SET new=2 old=1"), "%s", log->last);
    burst.mode = ebpfMonLogBurst;
    ebpfMonPutLogConfigure(log, &burst, &labels, 2);
    for (unsigned i = 0; i < 10; i++)
        addPut(log, i, 99, 2 + 0.1 * i);
    testOk1(log->counts.joined == 9 && strstr(log->last, "new=0 old=99"));
    ebpfMonPutLogTick(log, 7.8);
    testOk1(log->counts.summaries == 0);
    ebpfMonPutLogTick(log, 8);
    testOk(log->counts.summaries == 1 && strstr(log->last, "new=9 old=99") &&
           strstr(log->last, "burst=10 by alice@opi1 (10)"), "%s", log->last);
    addPut(log, 1, 0, 9);
    addPut(log, 2, 1, 9);
    ebpfMonPutLogClose(log, 9, 0);
    testOk(log->counts.summaries == 2 && log->conf.kind == ebpfMonPutLogNone, "closing ends the bursts");
    free(log);
}

static void addBurstPut(ebpfMonPutLog *log, unsigned value, ebpfMonPutResult result, int unexpected)
{
    ebpfMonPut p = somePut(value);

    p.result = result;
    p.unexpected = unexpected;
    strcpy(p.user, result == ebpfMonPutOk && !unexpected ? "alice" : "mallory");
    ebpfMonPutLogAddPut(log, &p, 1);
}

/* Somebody makes a put that should be seen, and hides it by a harmless one. */
static void testHiddenPuts(void)
{
    static const ebpfMonPutResult bad[] = {ebpfMonPutFailed, ebpfMonPutDenied, ebpfMonPutLost};
    ebpfMonPutLog *log = newLog(ebpfMonPutLogPv, ebpfMonFormatCaPutText, ebpfMonLogBurst, "PV");

    testDiag("a burst does not hide puts that should be seen");
    addBurstPut(log, 1, ebpfMonPutOk, 0);
    for (unsigned i = 0; i < 3; i++) {
        log->changed = 0;
        addBurstPut(log, 700 + i, bad[i], 0);
        testOk(log->changed && strstr(log->last, "result=") && strstr(log->last, " mallory "), "%s", log->last);
        addBurstPut(log, 2, ebpfMonPutOk, 0);
    }
    log->changed = 0;
    addBurstPut(log, 800, ebpfMonPutOk, 1);
    testOk(log->changed && strstr(log->last, " mallory VAC:SET new=800"), "%s", log->last);
    addBurstPut(log, 3, ebpfMonPutOk, 0);
    ebpfMonPutLogClose(log, 9, 0);
    testOk(strstr(log->last, "new=3 old=2 min=1 max=3 burst=5 by alice@opi1 (5)") && log->counts.joined == 4, "%s",
           log->last);
    free(log);
}

static void testLoss(void)
{
    ebpfMonPutLog *log = newLog(ebpfMonPutLogFile, ebpfMonFormatJson, ebpfMonLogAll, pathOf("late/log.json"));
    unsigned made = 0;
    size_t len;
    char *text;

    testDiag("lost puts are a line of the log");
    while (!ebpfMonPutLogGetCounts(log)->lost && made < 10000)
        addPut(log, made++, 0, 1);
    addPut(log, made++, 0, 1);
    ebpfMonPutLogGetCounts(log);
    testOk(log->counts.lost == 2 && log->counts.trouble && log->counts.lines == 0, "%" PRIu64 " lost of %u",
           log->counts.lost, made);
    mkdir(pathOf("late"), 0755);
    ebpfMonPutLogTick(log, 100);
    addPut(log, made++, 0, 100);
    ebpfMonPutLogClose(log, 101, 0);
    testOk(log->counts.lines == made - 2 + 1 && log->counts.summaries == 1 && log->counts.lost == 2,
           "%" PRIu64 " lines, one of them for the loss", log->counts.lines);
    text = contents(pathOf("late/log.json"), &len);
    testOk1(text && strstr(text, "\"lost\":2,\"message\":\"cannot open it"));
    free(text);
    free(log);
}

/* A server on loopback that has accepted nothing yet, with little room for what it gets. */
static int listenForLog(struct sockaddr_in *addr)
{
    socklen_t size = sizeof(*addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0), room = 4096;

    addr->sin_family = AF_INET;
    addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) || bind(fd, (struct sockaddr *)addr, size) ||
        listen(fd, 4) || getsockname(fd, (struct sockaddr *)addr, &size))
        testAbort("no server: %s", strerror(errno));
    return fd;
}

static int isConnected(const void *log)
{
    ebpfMonPutLogTick((ebpfMonPutLog *)log, 1);
    return ((const ebpfMonPutLog *)log)->server->up;
}

/* Accepts a connection, and reads it to its end. Returns the number of whole lines; "text": the begin of them. */
static uint64_t readConnection(int listener, char *text, size_t size)
{
    const struct timeval most = {.tv_sec = (time_t)DEADLINE};
    int fd = accept(listener, NULL, NULL);
    char buf[4096];
    size_t have = 0;
    uint64_t lines = 0;
    ssize_t n;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            lines += buf[i] == '\n';
            if (have < size - 1)
                text[have++] = buf[i];
        }
    }
    text[have] = 0;
    testOk(n == 0, "the connection ends, after %" PRIu64 " lines", lines);
    close(fd);
    return lines;
}

static void testServerOff(void)
{
    ebpfMonPutLogConf conf = {.kind = ebpfMonPutLogServer, .format = ebpfMonFormatCaPutText, .mode = ebpfMonLogBurst};
    ebpfMonPutLog *log = calloc(1, sizeof(*log));
    int listener = listenForLog(&conf.addr);
    char text[1000];
    uint64_t arrived, made = 0;
    int room = 4096;

    testDiag("the log of a server that works is switched off");
    ebpfMonPutLogConfigure(log, &conf, &labels, 1);
    testOk1(until(isConnected, log));
    addPut(log, 1, 0, 1);
    addPut(log, 2, 1, 1);
    ebpfMonPutLogClose(log, 1, 0);
    arrived = readConnection(listener, text, sizeof(text));
    testOk(arrived == 2 && log->counts.lines == 2 && !log->counts.lost && strstr(text, "burst=2 by alice@opi1 (2)\n"),
           "%" PRIu64 " written, %" PRIu64 " lost: %s", log->counts.lines, log->counts.lost, text);
    conf.mode = ebpfMonLogAll;
    ebpfMonPutLogConfigure(log, &conf, &labels, 1);
    testOk1(until(isConnected, log));
    setsockopt(log->server->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    while (made < 20000)
        addPut(log, (unsigned)made++, 0, 1);
    ebpfMonPutLogClose(log, 1, 0);
    arrived = readConnection(listener, text, sizeof(text));
    testOk(log->counts.lines == arrived && arrived && arrived < made && log->counts.lines + log->counts.lost == made,
           "more lines than the network takes at once: %" PRIu64 " written, %" PRIu64 " arrived", log->counts.lines,
           arrived);
    close(listener);
    free(log);
}

/* Of people: not links, not IOCs of this host; also in a burst. */
static void testPeople(void)
{
    int mode = ebpfMonLogModeParse("burst people");
    ebpfMonPutLogConf conf;
    ebpfMonPutLog *log = calloc(1, sizeof(*log));
    ebpfMonPut p = somePut(1);

    testDiag("puts of people");
    testOk1(ebpfMonLogModeParse("2 people") == (int)(ebpfMonLogAll | ebpfMonLogPeople));
    testOk1(ebpfMonLogModeParse("people") < 0 && ebpfMonLogModeParse("all persons") < 0);
    testOk1(ebpfMonLogModeParse("all ") < 0);
    testOk1(ebpfMonPutLogConfSetCaPutLog(&conf, "PV", 0, (ebpfMonLogMode)mode, "") == 0);
    testOk1(conf.mode == ebpfMonLogBurst && conf.people);
    conf.mode = ebpfMonLogAll;
    ebpfMonPutLogConfigure(log, &conf, &labels, 1);
    p.byProgram = 1;
    ebpfMonPutLogAddPut(log, &p, 1);
    p.byProgram = 0;
    p.through = ebpfMonByLink;
    ebpfMonPutLogAddPut(log, &p, 1);
    testOk(!log->changed && log->counts.skipped == 2, "an IOC's, and a link's");
    p.through = ebpfMonByShell;
    ebpfMonPutLogAddPut(log, &p, 1);
    testOk(log->changed && log->counts.skipped == 2, "somebody at the shell");
    ebpfMonPutLogClose(log, 1, 0);
    free(log);
}

static uint64_t published(void)
{
    uint64_t n = ebpfMonPublishedLock()->log.written;

    ebpfMonPublishedUnlock();
    return n;
}

static void testObject(void)
{
    ebpfMonPutLogs *logs = ebpfMonPutLogsNew();
    ebpfMonPut p = somePut(1);
    size_t len;
    char *text;

    testDiag("the logs of a process");
    ebpfMonPutLogsAddPut(logs, &p); /* no log: no line is written */
    testOk1(ebpfMonPutLogsRotate(logs) != 0);
    testOk1(ebpfMonPutLogsSetMetadata(logs, "lab", "B2") == 0 && ebpfMonPutLogsSetMetadata(logs, "pv", "x") != 0);
    for (int round = 0; round < 2; round++) {
        testOk1(ebpfMonPutLogsAddCaPutLog(logs, pathOf("object.log"), 1, ebpfMonLogAll, "%i ") == 0);
        for (unsigned i = 0; i < 100; i++)
            ebpfMonPutLogsAddPut(logs, &p);
        ebpfMonPutLogsFree(logs); /* nothing happens, because its thread runs */
        ebpfMonPutLogsStop(logs, 10);
        testOk(published() == 100u * (unsigned)(round + 1), "round %d: %" PRIu64 " lines", round, published());
    }
    text = contents(pathOf("object.log"), &len);
    testOk1(text && strstr(text, "vac1 {\"date\":\"2026-11-15\"") && strstr(text, "\"lab\":\"B2\""));
    free(text);
    ebpfMonPutLogsStop(logs, 1); /* nothing happens, because it has ended */
    ebpfMonPutLogsFree(logs);
    ebpfMonPutLogsFree(NULL);
}

/* Queues puts until the queue is full, and returns their number. The log thread publishes its state at least once a
 * second, so it waits for us. */
static uint64_t fillQueue(ebpfMonPutLogs *logs)
{
    ebpfMonRecordQueueState q;
    uint64_t made = 0, before;
    ebpfMonPut p = somePut(1);

    ebpfMonRecordQueueGetState(logs->queue, &q);
    before = q.dropped;
    do {
        ebpfMonPutLogsAddPut(logs, &p);
        if (++made % 100 == 0)
            ebpfMonRecordQueueGetState(logs->queue, &q);
    } while (q.dropped == before || made % 100);
    return made;
}

/* The number of lines of puts, and the sum of the puts that lines report as lost. */
static uint64_t countLines(const char *file, uint64_t *reported)
{
    size_t len;
    char *text = contents(pathOf(file), &len);
    uint64_t lines = 0;

    *reported = 0;
    for (char *at = text, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        char *loss;

        *end = 0;
        if ((loss = strstr(at, "\"lost\":")) != NULL)
            *reported += strtoull(loss + 7, NULL, 10);
        else
            lines++;
    }
    free(text);
    return lines;
}

static int isReported(const void *losses)
{
    uint64_t reported;

    countLines("queue.json", &reported);
    return reported >= *(const uint64_t *)losses;
}

static char said[2000];

static void keepMessage(void *unused, const char *text)
{
    strncat(said, text, sizeof(said) - strlen(said) - 1);
}

static void testQueueLosses(void)
{
    ebpfMonPutLogs *logs = ebpfMonPutLogsNew();
    ebpfMonRecordQueueState q;
    uint64_t made, lines, reported;

    testDiag("puts that the queue lost are a line of the log");
    begin();
    ebpfMonPutLogsAddJson(logs, pathOf("queue.json"), 0, 0, 0, ebpfMonLogAll);
    ebpfMonPublishedLock();
    made = fillQueue(logs);
    ebpfMonRecordQueueGetState(logs->queue, &q);
    ebpfMonPublishedUnlock();
    testOk(until(isReported, &q.dropped), "reported while it runs");

    testDiag("puts that are left when the monitor ends");
    errlogAddListener(keepMessage, NULL);
    ebpfMonPublishedLock();
    made += fillQueue(logs);
    epicsMutexMustLock(logs->lock);
    logs->stopping = 1; /* as ebpfMonPutLogsStop, whose time is over */
    epicsMutexUnlock(logs->lock);
    ebpfMonRecordQueueGetState(logs->queue, &q);
    ebpfMonPublishedUnlock();
    testOk(until(isReported, &(uint64_t){q.dropped + 1}), "the last line reports them");
    ebpfMonPutLogsStop(logs, 10);
    errlogFlush();
    errlogRemoveListeners(keepMessage, NULL);
    lines = countLines("queue.json", &reported);
    testOk(reported > q.dropped && lines + reported == made && lost() == reported,
           "%" PRIu64 " puts: %" PRIu64 " lines, %" PRIu64 " reported as lost, %" PRIu64 " counted", made, lines,
           reported, lost());
    testOk(strstr(said, "the monitor ends before the logs are written") != NULL, "%s", said);
    ebpfMonPutLogsFree(logs);
}

static void testTooMany(void)
{
    ebpfMonPutLogs *logs = ebpfMonPutLogsNew();
    char name[16];
    int refused = 0;

    testDiag("the number of logs is limited");
    for (unsigned i = 0; i <= EBPFMON_PUT_LOGS; i++) {
        sprintf(name, "many%u", i);
        refused += ebpfMonPutLogsAddJson(logs, pathOf(name), 0, 0, 0, ebpfMonLogAll) != 0;
    }
    testOk(refused == 1, "%d refused", refused);
    testOk1(ebpfMonPutLogsAddJson(logs, pathOf("many3"), 0, 0, 0, ebpfMonLogOff) == 0);
    testOk1(ebpfMonPutLogsAddJson(logs, pathOf("another"), 0, 0, 0, ebpfMonLogAll) == 0);
    ebpfMonPutLogsStop(logs, 5);
    ebpfMonPutLogsFree(logs);
}

static void runPutLog(void)
{
    makeLogFolder("testPutLog");
    eltc(0);
    testLargeNumbers();
    testModes();
    testPeople();
    testHiddenPuts();
    testLoss();
    testServerOff();
    testObject();
    testQueueLosses();
    testTooMany();
    eltc(1);
    removeAll(dir);
}

/* --- PutLogFormat --- */

/* The lines of the logs: JSON, caPutLog's text, caPutLog's JSON; and puts that changed nothing. */

static ebpfMonFormatter formatter;

static void expectLine(ebpfMonFormat format, const ebpfMonPut *put, const ebpfMonBurstInfo *burst, const char *want)
{
    static char buf[EBPFMON_LINE_MAX];
    size_t len = ebpfMonFormatPut(&formatter, format, put, burst, buf, sizeof(buf) - 1);

    buf[len] = 0;
    if (!testOk(strcmp(buf, want) == 0, "%s", want))
        testDiag("is: %s", buf);
}

#define TIMES "{\"time\":\"2026-11-15T07:28:03.123456789Z\",\"local\":\"2026-11-15T07:28:03.123456789+00:00\","

static void testFormats(void)
{
    ebpfMonPut p = somePut(115);
    ebpfMonBurstInfo b = {.puts = 15, .hasRange = 1, .min = -1.5, .max = 1e300, .writers = 2,
                          .writer = {{.user = "alice", .host = "opi1", .count = 12},
                                     {.user = "bob", .host = "opi2", .count = 3}}};

    testDiag("formats");
    expectLine(ebpfMonFormatJson, &p, NULL, TIMES "\"pv\":\"VAC:SET\","
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
    p.trace[0] = 0xab;
    p.trace[15] = 1;
    expectLine(ebpfMonFormatJson, &p, NULL, TIMES "\"pv\":\"VAC:SET\","
               "\"channel\":\"VAC:SET.VAL\",\"ioc\":\"vac1\",\"value\":115,\"old\":116,\"after\":\"110\","
               "\"hash\":\"00000000000000ab\",\"user\":\"alice\",\"host\":\"opi1\",\"peer\":\"127.0.0.1:5000\","
               "\"server\":\"127.0.0.1:5064\",\"real_user\":\"root\",\"pid\":77,\"uid\":0,\"command\":\"caput\","
               "\"container\":\"abc\",\"through\":\"CA link\",\"link\":\"A.OUT\",\"link_ioc\":\"b\",\"root\":\"R\","
               "\"cause\":\"scan .1 second\",\"thread\":\"CAS-client\",\"trace\":\"ab000000000000000000000000000001\","
               "\"result\":\"failed\",\"status\":5,"
               "\"message\":\"no\",\"seen\":\"both\",\"unexpected\":true,\"rule\":\"only ops\"}");
    expectLine(ebpfMonFormatCaPutText, &p, NULL, "15-Nov-26 07:28:03 opi1 alice VAC:SET.VAL new=115 old=116 "
               "result=failed");
}

/* West of Greenwich, east of it in summer, and with an odd offset. */
static void testLocalTimes(void)
{
    static const char *const zones[] = { "EST5", "XXX-1YYY,M3.5.0,M12.5.0", "ZZZ-05:45" };
    static const char *const local[] = { "2026-11-15T02:28:03.123456789-05:00", "2026-11-15T09:28:03.123456789+02:00",
                                         "2026-11-15T13:13:03.123456789+05:45" };
    char text[EBPFMON_LINE_MAX];
    ebpfMonPut p = somePut(1);

    for (unsigned i = 0; i < 3; i++) {
        setenv("TZ", zones[i], 1);
        tzset();
        text[ebpfMonFormatPut(&formatter, ebpfMonFormatJson, &p, NULL, text, sizeof(text))] = 0;
        testOk(strstr(text, "\"time\":\"2026-11-15T07:28:03.123456789Z\",") && strstr(text, local[i]), "%s", text);
    }
    setenv("TZ", "UTC", 1);
    tzset();
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
    expectLine(ebpfMonFormatJson, &p, &b, TIMES "\"pv\":\"VAC:SET\","
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

static void runPutLogFormat(void)
{
    setenv("TZ", "UTC", 1); /* caPutLog's times are local */
    tzset();
    testFormats();
    testLocalTimes();
    testRanges();
    testWriters();
    testValues();
    testArrays();
    testLongest();
    testChanges();
    ebpfMonFormatterFree(&formatter);
}

MAIN(testPutLog)
{
    testPlan(0);
    runPutLog();
    runPutLogFormat();
    return testDone();
}
