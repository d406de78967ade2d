/* SPDX-License-Identifier: BSD-3-Clause */
#include "access/guard.h"
#include "common/clock.h"
#include "module/modules.h"
#include "monitor/monitor.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"
#include "trace/traceText.h"
#include "watch/connectionSockets.h"

/* --- Calls from the room watch/ --- */

static void onIocsChanged(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPublisherWake(m->publish.publisher);
    ebpfMonRingReaderWake(m->eventThread); /* because puts may wait for the links of an IOC */
    ebpfMonModulesTellIocs();
}

/* A server that is not EPICS Base came or went. Packet thread. */
static void onPacketServersChanged(void *arg)
{
    ebpfMonModulesTellIocs();
}

static void onTargetsChanged(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonRingReaderWake(m->packetThread); /* because the namespaces may have changed */
}

static void onTrouble(void *arg, const char *text)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPublisherSetTrouble(m->publish.publisher, text);
}

/* --- Calls from the room put/ --- */

static void getFilter(void *arg, ebpfMonFilter *filter)
{
    ebpfMonMonitor *m = arg;

    ebpfMonRequestsGetFilter(m->requests, filter);
}

static void setTrace(ebpfMonMonitor *m, ebpfMonPut *put, const ebpfMonMessageKey *key)
{
    if (key->seqKind == EBPFMON_SEQ_MESSAGE && key->peer.sport)
        ebpfMonMessageGetTraceId(&key->peer, key->seq, put->messageTrace);
    ebpfMonPutTracesSetId(m->trace.putTraces, put);
}

/* Notes if the client is an IOC of this host (a sequence, a link of an IOC that is not watched), and publishes the
 * put. */
static void publishPut(ebpfMonMonitor *m, ebpfMonPut *put)
{
    if (put->peerPid) {
        ebpfMonTargetsLock(m->targets);
        put->byProgram = ebpfMonTargetsFindByPid(m->targets, (pid_t)put->peerPid) != NULL;
        ebpfMonTargetsUnlock(m->targets);
    }
    ebpfMonPutPublish(&m->publish.puts, put);
    ebpfMonModulesTellFinished(put);
}

/* A put that was seen in an IOC, and perhaps also in packets. Event thread. */
static void onIocPut(void *arg, const ebpfMonFinishedPut *finished)
{
    ebpfMonMonitor *m = arg;
    const ebpfMonPut *put = finished->put;
    const ebpfMonMessageKey *key = finished->key;
    ebpfMonPutSummary summary;

    setTrace(m, finished->put, key);
    if (!finished->isPublished && !ebpfMonOwnPutsHas(m->put.ownPuts, put) &&
        !ebpfMonGatewaysHold(m->put.gateways, put))
        publishPut(m, finished->put);
    if (put->linkChain.iocId)
        ebpfMonLinkMessagesNoteArrival(m->trace.linkMessages, &put->linkChain, put->link, key);
    ebpfMonPutSummaryMake(put, key, &summary);
    ebpfMonThreadPutsFinish(m->put.threadPuts, finished->iocId, finished->tid, finished->id, &summary);
    ebpfMonTracesAddPut(m->trace.traces, finished->iocId, finished->tid, finished->id, &summary);
}

static void onLinkWritten(void *arg, const ebpfMonLinkWrite *write)
{
    ebpfMonMonitor *m = arg;

    ebpfMonLinkMessagesAdd(m->trace.linkMessages, write);
}

static void onLinkChanged(void *arg, uint32_t iocId, uint64_t precord)
{
    ebpfMonMonitor *m = arg;
    const ebpfMonTarget *t;
    int willBeRead;

    ebpfMonTargetsLock(m->targets);
    t = ebpfMonTargetsFindById(m->targets, iocId);
    willBeRead = t && t->owesLinks; /* then all its links are read, later */
    ebpfMonTargetsUnlock(m->targets);
    if (!willBeRead)
        ebpfMonRequestsAddLinks(m->requests, iocId, precord);
}

/* A put that was seen only in packets. Packet thread. */
static void onPacketPut(void *arg, const ebpfMonFinishedPut *finished)
{
    const ebpfMonPut *put = finished->put;
    ebpfMonMonitor *m = arg;

    if (ebpfMonOwnPutsHas(m->put.ownPuts, put))
        return;
    if (put->peerPid && !put->linkChain.iocId) /* a program of this host sent it; the monitor of the other host joins
                                                * it */
        ebpfMonPutSpansExport(&m->trace.putSpans, put, &finished->key->peer, finished->key->seq, finished->key->at,
                              ebpfMonClockUnixOffset());
    setTrace(m, finished->put, finished->key);
    ebpfMonGatewaysSetClient(m->put.gateways, finished->put);
    publishPut(m, finished->put);
}

static void onHeldPut(void *arg, ebpfMonPut *put)
{
    publishPut(arg, put);
}

static uint64_t countLost(void *arg)
{
    const ebpfMonMonitor *m = arg;
    uint64_t lost[EBPFMON_LOST_KERNEL];

    ebpfMonKernelGetLost(lost);
    return lost[EBPFMON_LOST_RING] + lost[EBPFMON_LOST_THREADS] + lost[EBPFMON_LOST_FAULT] +
           ebpfMonLossesGet(&m->losses, ebpfMonLossGone);
}

static uint32_t findClient(void *arg, const ebpfMonWireEvent *ev, uint32_t *pid)
{
    struct ebpfMonOwner owner = { .pid = 0 };
    uint32_t netns = ebpfMonKernelGetOwner(&ev->peer, &ev->first, &owner);

    *pid = owner.pid;
    return netns;
}

static int isServed(void *arg, const ebpfMonPacketPut *put)
{
    return ebpfMonKernelIsServed(&put->peer, put->first.seq[0] || put->first.seq[1] ? &put->first : NULL,
                                 put->replied ? &put->seq : NULL);
}

static int hasBegun(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first)
{
    return ebpfMonKernelHasBegun(peer, first);
}

static void countDropped(void *arg, ebpfMonReal real)
{
    ebpfMonMonitor *m = arg;

    ebpfMonLossesAdd(&m->losses, real == ebpfMonRealPerhaps  ? ebpfMonLossReused :
                                 real == ebpfMonRealDoubtful ? ebpfMonLossDoubtful :
                                                               ebpfMonLossForged);
}

static int wantNoSpans(void *arg)
{
    return 0;
}

static const ebpfMonSpanSink *getSpanSink(void)
{
    static const ebpfMonSpanSink none = { .isWanted = wantNoSpans };
    const ebpfMonSpanSink *sink = ebpfMonModulesGetSpans();

    return sink ? sink : &none;
}

/* A put to a server elsewhere, which perhaps a CA link of a watched IOC sent. Packet thread. */
static void onPutElsewhere(void *arg, const ebpfMonWireEvent *ev, uint64_t at)
{
    const ebpfMonSpanSink *spans = getSpanSink();
    struct ebpfMonOwner owner = { .pid = 0 };
    ebpfMonMonitor *m = arg;

    if (ev->protocol != ebpfMonWireCa || !spans->isWanted(spans->arg))
        return;
    ebpfMonKernelGetOwner(&ev->peer, &ev->first, &owner);
    if (!owner.pid)
        return;
    ebpfMonLinkMessagesNotePacket(m->trace.linkMessages, owner.pid, ev->name, &ev->peer, ev->seq, at);
    ebpfMonRingReaderWake(m->eventThread); /* to look for the link write */
}

/* A client's put to one of the monitor's own PVs. Event thread. */
static void onOwnPut(void *arg, ebpfMonPut *put)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPutPublishOwn(&m->publish.puts, put);
}

/* --- Calls from the rooms trace/ and publish/ --- */

static int isPrinted(void *arg, ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    const ebpfMonMonitor *m = arg;

    return ebpfMonSlowChainsPrints(m->publish.slowChains, t, trace);
}

/* What ebpfMonModuleTrace.writeTree needs. */
typedef struct {
    ebpfMonTraceWalk   *walk;
    ebpfMonTarget      *t;
    const ebpfMonTrace *trace;
    uint64_t            unixOffset;
} toldTrace;

static size_t writeTree(const ebpfMonModuleTrace *told, char *buf, size_t size)
{
    const toldTrace *x = told->context;

    return ebpfMonTraceTextWrite(x->walk, x->t, x->trace, x->unixOffset, buf, size);
}

/* The chain that caused the trace. */
static ebpfMonModuleChain findSource(const ebpfMonTrace *trace)
{
    ebpfMonChainId cause = ebpfMonTraceGetCause(trace), beginner = ebpfMonTraceChainGetBeginner(trace->first);

    if (!cause.iocId && !trace->put)
        cause = trace->first->source.iocId ? trace->first->source : beginner;
    return (ebpfMonModuleChain){ .begin = cause.iocId ? cause.begin : 0, .thread = cause.tid };
}

static void tellTrace(ebpfMonMonitor *m, ebpfMonTarget *t, const ebpfMonTrace *trace, uint64_t unixOffset)
{
    const struct ebpfMonChain *first = &trace->first->chain;
    const toldTrace context = { m->trace.walk, t, trace, unixOffset };
    ebpfMonModuleChain chain[EBPFMON_TRACE_CHAINS];
    unsigned count = 0;
    const ebpfMonModuleTrace told = {
        .chain = chain, .source = findSource(trace), .writeTree = writeTree, .context = &context,
        .time = ebpfMonClockStamp(trace->end + unixOffset), .ioc = t->name,
        .root = ebpfMonCatalogueName(trace->cat, first->rootSlot), .tookMs = (double)(trace->end - first->begin) / 1e6,
        .chains = trace->chains, .records = ebpfMonTraceCountRecords(trace), .isIncomplete = trace->isIncomplete,
    };

    for (const ebpfMonTraceChain *c = trace->first; c && count < EBPFMON_TRACE_CHAINS; c = c->next)
        chain[count++] = (ebpfMonModuleChain){ .begin = c->chain.begin, .thread = c->chain.head.tid };
    ebpfMonModulesTellTrace(&told);
}

static int onTrace(void *arg, ebpfMonTarget *t, ebpfMonTrace *trace, uint64_t unixOffset)
{
    ebpfMonMonitor *m = arg;

    if (ebpfMonModulesWantTraces())
        tellTrace(m, t, trace, unixOffset);
    return ebpfMonSlowChainsAdd(m->publish.slowChains, t, trace, unixOffset);
}

/* All by which a trace may lack something. */
static uint64_t countLostOfTraces(void *arg)
{
    const ebpfMonMonitor *m = arg;
    uint64_t lost[EBPFMON_LOST_KERNEL];

    ebpfMonKernelGetLost(lost);
    return countLost(arg) + lost[EBPFMON_LOST_NESTED] + ebpfMonLossesGet(&m->losses, ebpfMonLossParts);
}

static void judgePut(void *arg, ebpfMonPut *put)
{
    ebpfMonMonitor *m = arg;

    ebpfMonRulesJudge(m->rules, put);
}

static void logPut(void *arg, const ebpfMonPut *put)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPutLogsAddPut(m->logs, put);
    ebpfMonModulesTellPut(put);
}

/* --- Making the rooms --- */

static int makeWatch(ebpfMonMonitor *m)
{
    const ebpfMonFollowerSink sink = { .iocsChanged = onIocsChanged, .trouble = onTrouble, .arg = m };

    ebpfMonTargetsSetListener(m->targets, onTargetsChanged, m);
    return ebpfMonWatchRoomMake(&m->watch, m->targets, m->requests, m->audits, m->settings.watchSelf, &sink);
}

static int makePut(ebpfMonMonitor *m)
{
    const ebpfMonPutRoomUses uses = {
        .targets = m->targets, .losses = &m->losses, .audits = m->audits, .packetServers = m->packetServers,
        .findOwner = ebpfMonKernelGetOwner, .findCertificate = ebpfMonKernelGetCertificate,
        .canJoin = ebpfMonFeature.recvLength, .watchSelf = m->settings.watchSelf,
        .iocPuts = { .finished = onIocPut, .linkWritten = onLinkWritten, .linkChanged = onLinkChanged,
                     .countLost = countLost, .missedReceive = ebpfMonKernelMissedReceive, .arg = m },
        .packets = { .getFilter = getFilter, .countLost = countLost, .findClient = findClient,
                     .isServed = isServed, .findReceived = ebpfMonConnectionSocketsFind,
                     .hasBegun = hasBegun, .countDropped = countDropped, .putElsewhere = onPutElsewhere, .arg = m },
        .wakes = { .wake = ebpfMonRingReaderWake, .events = m->eventThread, .packets = m->packetThread },
        .packetPut = onPacketPut, .heldPut = onHeldPut, .ownPut = onOwnPut, .arg = m,
    };

    ebpfMonPacketServersSetListener(m->packetServers, onPacketServersChanged, m);
    return ebpfMonPutRoomMake(&m->put, &uses);
}

static int makeTrace(ebpfMonMonitor *m)
{
    const ebpfMonTraceRoomUses uses = {
        .targets = m->targets,
        .losses = &m->losses,
        .threadPuts = m->put.threadPuts,
        .spans = *getSpanSink(),
        .finished = onTrace,
        .isPrinted = isPrinted,
        .eachThread = ebpfMonKernelEachThread,
        .countLost = countLostOfTraces,
        .arg = m,
    };

    return ebpfMonTraceRoomMake(&m->trace, &uses);
}

static int makePublish(ebpfMonMonitor *m)
{
    const ebpfMonPublishRoomUses uses = {
        .targets = m->targets, .search = m->search, .losses = &m->losses, .audits = m->audits, .costs = &m->watch.costs,
        .walk = m->trace.walk,
        .puts = { .judge = judgePut, .getFilter = getFilter, .log = logPut, .arg = m },
    };

    return ebpfMonPublishRoomMake(&m->publish, &uses);
}

int ebpfMonWiringMake(ebpfMonMonitor *m)
{
    if (m->settings.wireKiB > 0)
        m->packetThread = ebpfMonPacketThreadNew(m, (unsigned)m->settings.wireKiB * 1024);
    m->eventThread = ebpfMonEventThreadNew(m);
    if (m->packetThread && m->eventThread) /* the packet of a put comes shortly before the put, so the IOC need not wake
                                            * anybody */
        ebpfMonRingReaderSetNext(m->packetThread, m->eventThread);
    if (m->eventThread && makeWatch(m) == 0 && makePut(m) == 0 && makeTrace(m) == 0 && makePublish(m) == 0) {
        ebpfMonGuardedPutsSetSink(ebpfMonRingReaderWake, m->eventThread);
        return 0;
    }
    ebpfMonWiringFree(m);
    return -1;
}

void ebpfMonWiringFree(ebpfMonMonitor *m)
{
    ebpfMonGuardedPutsSetSink(NULL, NULL);
    ebpfMonRingReaderFree(m->eventThread);
    ebpfMonRingReaderFree(m->packetThread);
    m->eventThread = NULL;
    m->packetThread = NULL;
    ebpfMonPublishRoomFree(&m->publish);
    ebpfMonTraceRoomFree(&m->trace);
    ebpfMonPutRoomFree(&m->put);
    ebpfMonWatchRoomFree(&m->watch);
}
