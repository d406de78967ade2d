/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cadef.h>
#include <epicsTime.h>

#include "common/clock.h"
#include "put/packetPuts.h"
#include "put/packetText.h"
#include "put/putDecode.h"
#include "put/writerText.h"
#include "wire/caType.h"

struct ebpfMonPacketPuts {
    ebpfMonPutClients *clients;    /* these two are the caller's */
    ebpfMonLinkWrites *linkWrites;
    ebpfMonPutSink     sink;
    void              *arg;
    ebpfMonPut         put;        /* the one that is being finished: too large for the stack */
};

ebpfMonPacketPuts *ebpfMonPacketPutsNew(ebpfMonPutClients *clients, ebpfMonLinkWrites *linkWrites, ebpfMonPutSink sink,
                                        void *arg)
{
    ebpfMonPacketPuts *puts = calloc(1, sizeof(*puts));

    if (!puts)
        return NULL;
    puts->clients = clients;
    puts->linkWrites = linkWrites;
    puts->sink = sink;
    puts->arg = arg;
    return puts;
}

void ebpfMonPacketPutsFree(ebpfMonPacketPuts *puts)
{
    free(puts);
}

static void setPv(const ebpfMonPacketPut *p, ebpfMonPut *put)
{
    if (!p->channel[0]) {
        snprintf(put->pv, sizeof(put->pv), "sid %u", p->sid);
        return;
    }
    ebpfMonTextCopyBytes(put->pv, sizeof(put->pv), p->channel, ebpfMonPacketTextGetNameLength(p->channel));
    if (strcmp(put->pv, p->channel) != 0)
        ebpfMonTextCopy(put->channel, sizeof(put->channel), p->channel);
}

static void setValues(const ebpfMonPacketPut *p, ebpfMonPut *put)
{
    put->count = (long)p->count;
    put->hash = p->hash;
    put->oldCount = -1;
    if (p->isCall) {
        char text[sizeof(put->val) + 8];

        snprintf(text, sizeof(text), "call %s", (const char *)p->data);
        ebpfMonTextCopy(put->val, sizeof(put->val), text);
        put->isText = 1;
    } else if (p->pva) {
        ebpfMonTextCopy(put->val, sizeof(put->val), (const char *)p->data);
        put->isNumber = p->isNumber && ebpfMonPacketTextIsNumber(put->val);
        put->number = p->number;
    } else {
        put->isText = ebpfMonPacketTextFormatCa(p->data, p->have, p->baseType, p->count, put->val, sizeof(put->val),
                                                &put->isNumber, &put->number);
    }
    if (!p->old.known)
        return;
    put->hasOld = 1;
    put->oldIsNumber = p->old.isNumber;
    put->oldIsText = p->old.isText;
    put->oldNumber = p->old.number;
    put->oldCount = p->old.count;
    ebpfMonTextCopy(put->old, sizeof(put->old), p->old.text);
}

static void setAcknowledge(const ebpfMonPacketPut *p, ebpfMonPut *put)
{
    ebpfMonValue sent = {
        .data = p->data, .len = p->have, .type = ebpfMonDbfUshort, .size = 2, .count = 1, .network = 1,
    };

    put->hash = p->hash;
    ebpfMonPutDecodeSetAcknowledge(put, p->dbrType == EBPFMON_CA_PUT_ACKS, &sent);
}

/* A CA server adds the name of the record, or words of its own (send_err of rsrv/camessage.c). */
static void setMessage(const ebpfMonPacketPut *p, ebpfMonPut *put)
{
    size_t record = ebpfMonPutGetRecordLength(put->pv);
    const char *own = strncmp(p->message, put->pv, record) == 0 && !p->message[record] ? "" : p->message;

    if (p->ok || p->pva || own[0])
        ebpfMonTextCopy(put->message, sizeof(put->message), own);
    else
        ebpfMonTextCopy(put->message, sizeof(put->message), ca_message((long)p->status));
}

static void setResult(const ebpfMonPacketPut *p, int missed, ebpfMonPut *put)
{
    if (p->replied && p->ok && p->pva && p->inside && !missed) {
        put->result = ebpfMonPutUnwritten; /* a member of a group without +putorder, a field like display.units */
        setMessage(p, put);
    } else if (p->replied) {
        put->result = p->ok ? ebpfMonPutOk : p->denied ? ebpfMonPutDenied : ebpfMonPutFailed;
        setMessage(p, put);
    } else if (p->inside) {
        /* The IOC went on with this circuit, or ended, and did not make the put. Only a write-notify may still
         * wait for its record. */
        put->result = missed || (p->replyAsked && !p->pva && !p->closed) ? ebpfMonPutUnknown : ebpfMonPutLost;
    } else {
        put->result = p->replyAsked ? ebpfMonPutUnknown : ebpfMonPutSent;
    }
}

void ebpfMonPacketPutsFinish(ebpfMonPacketPuts *puts, const ebpfMonPacketPut *p, const char *server, int missed)
{
    ebpfMonMessageKey key = { .peer = p->peer, .at = p->at, .seq = p->seq, .seqKind = EBPFMON_SEQ_MESSAGE };
    ebpfMonPut *put = &puts->put;
    ebpfMonFinishedPut finished = { .put = put, .key = &key };
    ebpfMonPutClient client;

    memset(put, 0, sizeof(*put));
    put->time = ebpfMonClockStamp(p->time);
    put->at = p->at;
    put->seen = EBPFMON_SEEN_WIRE;
    put->through = p->pva ? ebpfMonByPva : ebpfMonByCa;
    snprintf(put->ioc, sizeof(put->ioc), "%s", server);
    setPv(p, put);
    if (!p->pva && ebpfMonCaTypeIsAcknowledge(p->dbrType))
        setAcknowledge(p, put);
    else
        setValues(p, put);
    if (p->outer.port)
        ebpfMonPutClientsFindOuter(puts->clients, &p->peer, &p->outer, &p->first, p->user, p->host, &client);
    else
        ebpfMonPutClientsFind(puts->clients, &p->peer, &p->first, p->user, p->host, &client);
    ebpfMonPutClientSet(&client, put);
    if (client.peerPid && !p->pva)
        ebpfMonLinkWritesTakeWriter(puts->linkWrites, client.peerPid, p->channel, p->at, put);
    setResult(p, missed, put);
    put->isPartly = p->made;
    ebpfMonWriterTextComplete(put);
    puts->sink(puts->arg, &finished);
}
