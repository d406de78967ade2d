/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of puts become puts: names in place of addresses, texts in place of bytes. No state. What they need from the
 * memory of the IOC is read by ebpfMonTargetsGetReads, so call them again as host/lateReads.h says. Event thread, under
 * ebpfMonTargetsLock.
 */
#ifndef EBPFMON_PUTDECODE_H
#define EBPFMON_PUTDECODE_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "put/putWriter.h"
#include "put/valueText.h"
#include "watch/target.h"

/* Nonzero: "put" is filled, except its writer (putWriter.h). 0: the event contradicts itself. "size": bytes of the
 * event with its values. *change: after this put the record may have to be counted in another way; precord 0: it need
 * not. */
int ebpfMonPutDecodeEvent(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, size_t size, ebpfMonPut *put,
                          ebpfMonLinkPut *change);

/* What must be kept of the event of a put until its result comes. */
typedef struct {
    uint64_t pfldDes, precord;
    int16_t  fieldType, fieldSize;
    int      isAcknowledge; /* of an alarm: it writes another field than that of its channel */
} ebpfMonPutAddress;

/* Nonzero: this put acknowledges an alarm (DBR_PUT_ACKT, DBR_PUT_ACKS). */
int ebpfMonPutDecodeIsAcknowledge(const struct ebpfMonPutEvent *ev);

/* Sets put->after, if the field now has another value than was sent. */
void ebpfMonPutDecodeResult(ebpfMonTarget *t, const ebpfMonPutAddress *at, const struct ebpfMonResultEvent *ev,
                            ebpfMonPut *put);

/* A link field was written: dbPut, whose result is seen, is not called for it (dbPutFieldLink, dbAccess.c). So compares
 * the link at this address of the IOC with what "put" wrote, and sets put->result and put->status. Leaves them if the
 * link is of a kind that has no name, or is not read yet. */
void ebpfMonPutDecodeLinkResult(ebpfMonTarget *t, uint64_t linkAt, ebpfMonPut *put);

/* Nonzero: a link field to which "value" was put has this text ("link") then. Any thread. */
int ebpfMonPutDecodeIsLink(const char *value, const char *link);

/* Makes "put" to RECORD.FIELD an acknowledgement of the alarm of RECORD, which does not touch FIELD (putAcks and
 * putAckt of dbAccess.c): sets its names, its value and its numbers of elements. Any thread. */
void ebpfMonPutDecodeSetAcknowledge(ebpfMonPut *put, int isSeverity, const ebpfMonValue *sent);

/* ebpfMonDbf… of a plain type (DBR_…) of the CA protocol. Any thread. */
int ebpfMonPutDecodeCaType(int dbrType);

#endif
