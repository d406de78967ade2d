/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "ioc/procInfo.h"
#include "monitor/puts.h"
#include "probe/loader.h"
#include "trace/linkMessages.h"
#include "trace/putSpans.h"
#include "trace/traces.h"

/* A name service answers within microseconds (files) or some milliseconds (LDAP). If it hangs the event thread waits
 * this long, once; meanwhile the event ring has room for the events of all IOCs. */
#define USER_NAME_DEADLINE 0.1 /* s */
#define USER_NAME_STOP     1.0 /* s */

/* A put that was seen in an IOC, and perhaps in packets too. Event thread. */
static void onIocPut(void *arg, const ebpfMonFinishedPut *finished)
{
    ebpfMonPuts *puts = arg;
    const ebpfMonPut *put = finished->put;
    const ebpfMonMessageKey *key = finished->key;
    ebpfMonPutSummary summary;

    ebpfMonPutPublisherPublish(puts->publisher, finished->put);
    if (put->linkChain.iocId)
        ebpfMonLinkMessagesNoteArrival(&put->linkChain, put->link,
                                       key->seqKind == EBPFMON_SEQ_MESSAGE ? &key->peer : NULL, key->seq, key->at, 1);
    ebpfMonPutSummaryMake(put, key, &summary);
    ebpfMonThreadPutsFinish(puts->threadPuts, finished->iocId, finished->tid, finished->id, &summary);
    ebpfMonTracesAddPut(finished->iocId, finished->tid, finished->id, &summary);
}

static void onLinkWritten(void *arg, const ebpfMonLinkWrite *write)
{
    (void)arg;
    ebpfMonLinkMessagesAdd(write);
}

static void onLinkChanged(void *arg, uint32_t iocId, uint64_t precord)
{
    ebpfMonPuts *puts = arg;

    ebpfMonRequestsAddLinks(puts->requests, iocId, precord);
}

/* A put that was seen in packets only. Packet thread. */
static void onPacketPut(void *arg, const ebpfMonFinishedPut *finished)
{
    ebpfMonPuts *puts = arg;
    const ebpfMonPut *put = finished->put;

    if (put->peerPid && !put->linkChain.iocId) /* a program here sent it: the monitor of the other host joins it */
        ebpfMonSpansMessage(put, &finished->key->peer, finished->key->seq, finished->key->at);
    ebpfMonPutPublisherPublish(puts->publisher, finished->put);
}

int ebpfMonPutsMake(ebpfMonPuts *puts, ebpfMonTargets *targets, ebpfMonRequests *requests,
                    ebpfMonPutPublisher *publisher)
{
    const ebpfMonIocPutSinks sinks = {
        .finished = onIocPut, .linkWritten = onLinkWritten, .linkChanged = onLinkChanged, .arg = puts,
    };

    memset(puts, 0, sizeof(*puts));
    puts->requests = requests;
    puts->publisher = publisher;
    puts->users = ebpfMonUserNamesNew(ebpfMonProcUser, USER_NAME_DEADLINE);
    puts->clients = ebpfMonPutClientsNew(puts->users, ebpfMonKernelGetOwner);
    puts->linkWrites = ebpfMonLinkWritesNew();
    puts->join = ebpfMonPutJoinNew();
    puts->threadPuts = ebpfMonThreadPutsNew();
    puts->iocPuts = ebpfMonIocPutsNew(targets, puts->clients, puts->join, puts->linkWrites, puts->threadPuts, &sinks);
    puts->servers = ebpfMonServersNew(targets, NULL);
    puts->lastValues = ebpfMonLastValuesNew();
    puts->packetPuts = ebpfMonPacketPutsNew(puts->clients, puts->linkWrites, onPacketPut, puts);
    if (puts->users && puts->clients && puts->linkWrites && puts->join && puts->threadPuts && puts->iocPuts &&
        puts->servers && puts->lastValues && puts->packetPuts)
        return 0;
    ebpfMonPutsFree(puts);
    return -1;
}

void ebpfMonPutsFree(ebpfMonPuts *puts)
{
    ebpfMonPacketPutsFree(puts->packetPuts);
    ebpfMonLastValuesFree(puts->lastValues);
    ebpfMonServersFree(puts->servers);
    ebpfMonIocPutsFree(puts->iocPuts);
    ebpfMonThreadPutsFree(puts->threadPuts);
    ebpfMonPutJoinFree(puts->join);
    ebpfMonLinkWritesFree(puts->linkWrites);
    ebpfMonPutClientsFree(puts->clients);
    ebpfMonUserNamesFree(puts->users, USER_NAME_STOP); /* if the name service hangs, its thread and memory stay */
    memset(puts, 0, sizeof(*puts));
}
