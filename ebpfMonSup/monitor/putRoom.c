/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/clock.h"
#include "export/export.h"
#include "ioc/procInfo.h"
#include "model/losses.h"
#include "monitor/monitor.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"

/* A name service answers within microseconds (files) or some milliseconds (LDAP). If it hangs the event thread waits this
 * long, once; meanwhile the event ring has room for the events of all IOCs. */
#define USER_NAME_DEADLINE 0.1 /* s */
#define USER_NAME_STOP     1.0 /* s */

/* Notes whether the client is an IOC of this host (a sequence, a link of an IOC that is not watched), then publishes, and notes the
 * use. */
static void publishPut(ebpfMonMonitor *m, ebpfMonPut *put)
{
    if (put->peerPid) {
        ebpfMonTargetsLock(m->targets);
        put->byIoc = ebpfMonTargetsFindByPid(m->targets, (pid_t)put->peerPid) != NULL;
        ebpfMonTargetsUnlock(m->targets);
    }
    ebpfMonPutPublisherPublish(m->publish.putPublisher, put);
    ebpfMonUseSourcesAddPut(m->usage.notes, put);
}

/* A put that was seen in an IOC, and perhaps in packets too. Event thread. */
static void onIocPut(void *arg, const ebpfMonFinishedPut *finished)
{
    ebpfMonMonitor *m = arg;
    const ebpfMonPut *put = finished->put;
    const ebpfMonMessageKey *key = finished->key;
    ebpfMonPutSummary summary;

    if (!ebpfMonOwnPutsHas(m->put.ownPuts, put))
        publishPut(m, finished->put);
    if (put->linkChain.iocId)
        ebpfMonLinkMessagesNoteArrival(m->trace.linkMessages, &put->linkChain, put->link,
                                       key->seqKind == EBPFMON_SEQ_MESSAGE ? &key->peer : NULL, key->seq, key->at, 1);
    ebpfMonPutSummaryMake(put, key, &summary);
    ebpfMonThreadPutsFinish(m->put.threadPuts, finished->iocId, finished->tid, finished->id, &summary);
    ebpfMonTracesAddPut(m->trace.traces, finished->iocId, finished->tid, finished->id, &summary);
}

static void onLinkWritten(void *arg, const ebpfMonLinkWrite *write)
{
    ebpfMonMonitor *m = arg;

    ebpfMonLinkMessagesAdd(m->trace.linkMessages, write);
}

static void onLinkChanged(void *arg, const ebpfMonLinkPut *put)
{
    ebpfMonMonitor *m = arg;

    ebpfMonRequestsAddLinks(m->watch.requests, put);
}

/* A put that was seen in packets only. Packet thread. */
static void onPacketPut(void *arg, const ebpfMonFinishedPut *finished)
{
    const ebpfMonPut *put = finished->put;
    ebpfMonMonitor *m = arg;

    if (ebpfMonOwnPutsHas(m->put.ownPuts, put))
        return;
    if (put->peerPid && !put->linkChain.iocId) /* a program here sent it: the monitor of the other host joins it */
        ebpfMonPutSpansExport(m->trace.putSpans, put, &finished->key->peer, finished->key->seq, finished->key->at,
                              ebpfMonClockUnixOffset());
    publishPut(m, finished->put);
}

static uint64_t countLost(void *arg)
{
    uint64_t lost[EBPFMON_LOST_KERNEL];

    (void)arg;
    ebpfMonKernelGetLost(lost);
    return lost[EBPFMON_LOST_RING] + lost[EBPFMON_LOST_THREADS] + lost[EBPFMON_LOST_FAULT] +
           ebpfMonLossesGet(ebpfMonLossGone);
}

/* Perhaps a CA link of a watched IOC sent it. Packet thread. */
static void onPutElsewhere(void *arg, const ebpfMonWireEvent *ev, uint64_t at)
{
    struct ebpfMonOwner owner = { .pid = 0 };
    ebpfMonMonitor *m = arg;

    if (!ebpfMonExportWantsSpans() || ev->protocol != ebpfMonWireCa)
        return;
    ebpfMonKernelGetOwner(&ev->peer, &owner);
    if (!owner.pid)
        return;
    ebpfMonLinkMessagesNotePacket(m->trace.linkMessages, owner.pid, ev->name, &ev->peer, ev->seq, at);
    ebpfMonEventThreadWake(m->eventThread); /* it looks for the link write */
}

static void wakeEventThread(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonEventThreadWake(m->eventThread);
}

static void wakePacketThread(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPacketThreadWake(m->packetThread);
}

/* Of a client to one of our PVs. Event thread. */
static void onOwnPut(void *arg, ebpfMonPut *put)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPutPublisherPublishOwn(m->publish.putPublisher, put);
}

int ebpfMonPutRoomMake(ebpfMonMonitor *m)
{
    ebpfMonTargets *targets = m->targets;
    ebpfMonPutRoom *room = &m->put;
    const ebpfMonIocPutSinks sinks = {
        .finished = onIocPut, .linkWritten = onLinkWritten, .linkChanged = onLinkChanged, .countLost = countLost,
        .arg = m,
    };
    const ebpfMonPacketEventCalls calls = {
        .getFilter = ebpfMonWatchRoomGetFilter, .countLost = countLost, .putElsewhere = onPutElsewhere, .arg = m,
    };
    const ebpfMonPutJoinWakes wakes = { .events = wakeEventThread, .packets = wakePacketThread, .arg = m };

    memset(room, 0, sizeof(*room));
    room->users = ebpfMonUserNamesNew(ebpfMonProcUser, USER_NAME_DEADLINE);
    room->clients = ebpfMonPutClientsNew(room->users, ebpfMonKernelGetOwner);
    room->linkWrites = ebpfMonLinkWritesNew();
    room->join = ebpfMonPutJoinNew();
    if (room->join)
        ebpfMonPutJoinSetWakes(room->join, &wakes);
    room->threadPuts = ebpfMonThreadPutsNew();
    room->iocPuts = ebpfMonIocPutsNew(targets, room->clients, room->join, room->linkWrites, room->threadPuts, &sinks);
    room->servers = ebpfMonServersNew(targets, NULL);
    room->packetPuts = ebpfMonPacketPutsNew(room->clients, room->linkWrites, onPacketPut, m);
    room->packetEvents = ebpfMonPacketEventsNew(room->join, room->servers, room->packetPuts, &calls,
                                                ebpfMonFeature.recvLength);
    room->ownPuts = ebpfMonOwnPutsNew(room->clients, room->users, m->settings.watchSelf, onOwnPut, m);
    if (room->users && room->clients && room->linkWrites && room->join && room->threadPuts && room->iocPuts &&
        room->servers && room->packetPuts && room->packetEvents && room->ownPuts)
        return 0;
    ebpfMonPutRoomFree(room);
    return -1;
}

void ebpfMonPutRoomFree(ebpfMonPutRoom *room)
{
    ebpfMonOwnPutsFree(room->ownPuts);
    ebpfMonPacketEventsFree(room->packetEvents);
    ebpfMonPacketPutsFree(room->packetPuts);
    ebpfMonServersFree(room->servers);
    ebpfMonIocPutsFree(room->iocPuts);
    ebpfMonThreadPutsFree(room->threadPuts);
    ebpfMonPutJoinFree(room->join);
    ebpfMonLinkWritesFree(room->linkWrites);
    ebpfMonPutClientsFree(room->clients);
    ebpfMonUserNamesFree(room->users, USER_NAME_STOP); /* if the name service hangs, its thread and memory stay */
    memset(room, 0, sizeof(*room));
}
