/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares text and spans of the traces of traceScenes.h with the files traceText.expected and traceSpans.expected.
 * With TRACE_OUTPUT=FOLDER in its environment the test writes its results there. Look at them and copy them if they
 * are right.
 */
#include <time.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "put/threadPuts.h"
#include "trace/traceSpans.h"
#include "trace/traceText.h"
#include "traceDump.h"
#include "traceScenes.h"

#define UNIX_OFFSET ((SCENE_EPOCH + (uint64_t)POSIX_TIME_AT_EPICS_EPOCH) * 1000000000u)
#define SPANS 10000

static ebpfMonTargets *targets;
static ebpfMonLinkMessages *messages;
static ebpfMonThreadPuts *threadPuts;
static ebpfMonTraces *traces;
static ebpfMonTraceWalk *walk;
static ebpfMonTraceSpans *spans;

static char textMemory[200000], spanMemory[2000000];
static dump text = { textMemory, sizeof(textMemory), 0 }, spanText = { spanMemory, sizeof(spanMemory), 0 };
static int exports, isLong;
static unsigned exported; /* spans of the trace that was finished last … */
static int isJoined;      /* … or, if nonzero, of all traces since it was set */
static uint8_t known[SPANS][EBPFMON_SPAN_ID]; /* the ids of the spans of this trace */
static unsigned orphans;  /* spans with a parent that came later, or not at all */

static int isExporting(void *arg)
{
    return exports;
}

static int hasParent(const ebpfMonSpan *s)
{
    for (unsigned i = 0; i < exported; i++)
        if (memcmp(known[i], s->parent, sizeof(s->parent)) == 0)
            return 1;
    return 0;
}

static void addSpan(void *arg, const ebpfMonSpan *s)
{
    if (!isLong)
        dumpSpan(&spanText, s);
    orphans += isLong && exported && !hasParent(s);
    memcpy(known[exported++ % SPANS], s->id, sizeof(s->id));
}

static unsigned room = UINT32_MAX; /* spans for which there is room */

static int hasRoom(void *arg, unsigned count)
{
    return count <= room;
}

static const ebpfMonSpanSink sink = { .isWanted = isExporting, .add = addSpan, .hasRoom = hasRoom };

static int onTrace(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace)
{
    static char buf[65536];

    ebpfMonTraceTextWrite(walk, t, trace, UNIX_OFFSET, buf, sizeof(buf));
    dumpAdd(&text, "%s", buf);
    if (!isJoined)
        exported = 0;
    ebpfMonTraceSpansExport(spans, t, trace, UNIX_OFFSET);
    return 0;
}

static int isDescribed(void *arg, ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    return 1;
}

static void sceneAddChain(const struct ebpfMonChain *chain, const struct ebpfMonChainRec *rec, uint32_t count)
{
    ebpfMonTracesAddChain(traces, sceneTarget, chain, rec, count);
    ebpfMonTracesFinishChain(traces);
}

static void sceneBeginHandOver(const struct ebpfMonHandOverEvent *ev)
{
    ebpfMonTracesBeginHandOver(traces, ev);
}

static void sceneEndHandOver(const struct ebpfMonHandOverEvent *ev)
{
    ebpfMonTracesEndHandOver(traces, ev);
}

static void sceneAddThreadPut(const struct ebpfMonPutEvent *ev)
{
    ebpfMonThreadPutsAdd(threadPuts, ev, "");
}

static void sceneAddPut(uint32_t tid, uint64_t id, const ebpfMonPut *put, const ebpfMonMessageKey *key)
{
    ebpfMonPutSummary summary;

    ebpfMonPutSummaryMake(put, key, &summary);
    ebpfMonThreadPutsFinish(threadPuts, sceneTarget->iocId, tid, id, &summary);
    ebpfMonTracesAddPut(traces, sceneTarget->iocId, tid, id, &summary);
}

static void sceneAddLinkWrite(const ebpfMonLinkWrite *write)
{
    ebpfMonLinkMessagesAdd(messages, write);
}

static void sceneNoteArrival(const ebpfMonChainId *chain, const char *link, const struct ebpfMonPeer *peer,
                             uint32_t seq, uint64_t at, int inside)
{
    ebpfMonMessageKey key = { .at = at };

    if (!inside) { /* seen in packets */
        ebpfMonLinkMessagesNotePacket(messages, (uint32_t)sceneTarget->pid, "OTHER:PV", peer, seq, at);
        ebpfMonLinkMessagesMatch(messages, at + 1);
        return;
    }
    if (peer) {
        key.peer = *peer;
        key.seq = seq;
        key.seqKind = EBPFMON_SEQ_MESSAGE;
    }
    ebpfMonLinkMessagesNoteArrival(messages, chain, link, &key);
}

static void sceneTick(uint64_t now, int all)
{
    ebpfMonTracesTick(traces, now, all);
}

static void sceneBegin(const char *name)
{
    dumpAdd(&text, "== %s\n", name);
    isLong = strcmp(name, "long") == 0;
    if (isLong)
        dumpAdd(&spanText, "== %s\n", name);
}

/* Line by line, so that a difference can be read. */
static void compareWith(const char *file, const dump *d)
{
    char path[500], wanted[4000], *line = d->text, *end;
    unsigned number = 0, different = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", EXPECTED, file);
    f = fopen(path, "r");
    if (!f)
        testAbort("%s: not there", path);
    while (fgets(wanted, sizeof(wanted), f)) {
        number++;
        end = strchr(line, '\n');
        if (end && strlen(wanted) == (size_t)(end + 1 - line) && strncmp(line, wanted, strlen(wanted)) == 0) {
            line = end + 1;
            continue;
        }
        if (different++ < 3)
            testDiag("%s:%u\nis     %.*s\nwanted %s", file, number, end ? (int)(end - line) : 0, line, wanted);
        if (end)
            line = end + 1;
    }
    fclose(f);
    testOk(number && !different && !*line, "%s is as wanted: %u lines, %u different, %u more", file, number, different,
           (unsigned)strlen(line));
}

static void writeTo(const char *folder, const char *file, const dump *d)
{
    char path[500];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    f = fopen(path, "w");
    if (!f)
        testAbort("%s: cannot be written", path);
    fputs(d->text, f);
    fclose(f);
}

/* Puts of programs to servers that are not watched. */
static void testPutSpans(void)
{
    static ebpfMonPutSpans own, *put = &own;
    ebpfMonMessageKey key = sceneKey(0);
    ebpfMonPut p = scenePut("me@here");
    unsigned n;

    own = (ebpfMonPutSpans){ .targets = targets, .sink = sink };
    isLong = 0;
    exported = 0;
    spanText.length = 0;
    exports = 0;
    ebpfMonPutSpansExport(put, &p, &key.peer, 77, 1000 * MS, UNIX_OFFSET);
    testOk(!exported, "no span of a put while none is wanted");
    exports = 1;
    ebpfMonPutSpansExport(put, &p, &key.peer, 77, 1000 * MS, UNIX_OFFSET);
    testOk(exported == 1 && strstr(spanMemory, "'put R0'") && strstr(spanMemory, "of 'caput' 4711") &&
           strstr(spanMemory, "user.name='me'"), "a put has a span: %s", spanMemory);
    p.peerPid = (uint32_t)getpid();
    spanText.length = 0;
    ebpfMonPutSpansExport(put, &p, &key.peer, 78, 1001 * MS, UNIX_OFFSET);
    testOk(strstr(spanMemory, "of 'sceneIoc' self") != NULL, "an IOC that we watch has its own name");
    isLong = 1;
    for (unsigned i = 0; i < 1000; i++)
        ebpfMonPutSpansExport(put, &p, &key.peer, 78, 1002 * MS, UNIX_OFFSET);
    n = exported;
    ebpfMonPutSpansExport(put, &p, &key.peer, 79, 2002 * MS, UNIX_OFFSET);
    testOk(n == 500 && exported == 501, "the number of spans in one second is limited: %u", n);
}

static void testLimits(void)
{
    static int records[1300];

    exports = 1;
    isLong = 1;
    orphans = 0;
    for (int i = 0; i < 1299; i++)
        records[i] = 100 + i;
    records[1299] = -1;
    sceneSend(sceneChain("scan-1", 10, 200000 * MS, 100), records);
    testOk(exported == 1001 && !orphans, "a trace has %u spans, %u of them without parent", exported, orphans);
    isLong = 0;
    spanText.length = 0;
    sceneSend(sceneChain("scan-1", 10, 200500 * MS, 100), records);
    testOk(strstr(spanMemory, "epics.chain.incomplete=1") != NULL, "… and says that it is incomplete");
    for (room = UINT32_MAX;; room = 3) {
        spanText.length = 0;
        sceneSend(sceneChain("scan-1", 10, 200600 * MS, 100), (int[]){ 100, 101, 102, 103, -1 });
        if (room == 3)
            break;
        testOk(strstr(spanMemory, "epics.chain.incomplete=0") != NULL, "a short one is complete …");
    }
    testOk(strstr(spanMemory, "epics.chain.incomplete=1") != NULL, "… but not if the queue has no room for it");
    room = UINT32_MAX;
    exports = 0;
    exported = 0;
    sceneSend(sceneChain("scan-1", 10, 201000 * MS, 100), records);
    testOk(!exported, "no spans while none are wanted");
}

/* A chain that completes a record has no span of its own. What it causes has the span above it as its parent. */
static void testParents(void)
{
    static const ebpfMonMessageKey noMessage = { .at = 0 };
    struct ebpfMonChain a = sceneAsync(sceneChain("scan-1", 10, 300000 * MS, 0), 3, -1), b, c, d;
    ebpfMonPut put = scenePut("R7.OUT");

    isLong = isJoined = exports = 1;
    orphans = exported = 0;
    SEND(a, 0, 1);
    b = sceneCompletes(a, sceneChain("cbLow", 20, 300010 * MS, 3));
    b.async[0] = SCENE_SLOT + 4 + 1;
    SEND(b, 3);
    c = sceneCompletes(b, sceneChain("cbLow", 20, 300020 * MS, 4));
    SEND(c, 4, 7);
    d = sceneChain("dbCaLink", 41, 300030 * MS, 10); /* R7 wrote to R10: as the kernel part says it, chain b did */
    sceneThreadPut(d, 9);
    SEND(d, 10);
    put.through = ebpfMonByCaLink;
    put.linkChain = (ebpfMonChainId){ .iocId = b.head.iocId, .tid = b.head.tid, .begin = b.begin };
    sceneAddPut(41, 9, &put, &noMessage);
    sceneTick(300040 * MS, 0);
    testOk(exported == 10 && !orphans, "a put by a link in a later step: of %u spans %u have no parent", exported,
           orphans);

    orphans = exported = 0;
    a = sceneAsync(sceneChain("scan-1", 10, 310000 * MS, 0), 3, -1);
    SEND(a, 0, 1);
    b = sceneCompletes(a, sceneChain("cbLow", 20, 310010 * MS, 3));
    b.async[0] = SCENE_SLOT + 4 + 1;
    SEND(b, 3);
    sceneTick(321000 * MS, 0);
    SEND(sceneCompletes(b, sceneChain("cbLow", 20, 330000 * MS, 4)), 4, 7);
    testOk(exported > 5 && !orphans, "a step that comes late: of %u spans %u have no parent", exported, orphans);
    isJoined = 0;
}

MAIN(testTraceOutput)
{
    const char *folder = getenv("TRACE_OUTPUT");
    ebpfMonTracesUses uses = { .exportsSpans = isExporting, .isDescribed = isDescribed };
    ebpfMonTraceSpansUses spanUses = { .sink = sink };

    testPlan(13);
    setenv("TZ", "UTC", 1);
    tzset();
    exports = 1;
    targets = ebpfMonTargetsNew();
    sceneMakeIoc();
    ebpfMonTargetsAdd(targets, sceneTarget);
    messages = ebpfMonLinkMessagesNew();
    uses.threadPuts = threadPuts = ebpfMonThreadPutsNew();
    walk = ebpfMonTraceWalkNew();
    uses.targets = spanUses.targets = targets;
    uses.linkMessages = spanUses.linkMessages = messages;
    traces = spanUses.traces = ebpfMonTracesNew(&uses, onTrace, NULL);
    spanUses.salt = 0x5a5a5a5a5a5a5a5aull;
    spanUses.walk = walk;
    spans = ebpfMonTraceSpansNew(&spanUses);
    sceneAll();
    if (folder) {
        writeTo(folder, "traceText.expected", &text);
        writeTo(folder, "traceSpans.expected", &spanText);
    }
    compareWith("traceText.expected", &text);
    compareWith("traceSpans.expected", &spanText);
    testLimits();
    testParents();
    testPutSpans();
    ebpfMonTraceSpansFree(spans);
    ebpfMonTracesFree(traces);
    ebpfMonTraceWalkFree(walk);
    ebpfMonThreadPutsFree(threadPuts);
    ebpfMonLinkMessagesFree(messages);
    return testDone();
}
