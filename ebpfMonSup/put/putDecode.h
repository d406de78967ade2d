/* SPDX-License-Identifier: BSD-3-Clause */
/* Put events become puts: names for addresses, texts for values, people for connections. Event thread only. */
#ifndef EBPFMON_PUTDECODE_H
#define EBPFMON_PUTDECODE_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "watch/target.h"

/* Nonzero: *put is filled. Under ebpfMonTargetsLock. "cause": who began what this put is the second half of; NULL:
 * nobody else. "linkChanged": the links of the record may differ now. */
int ebpfMonPutDecode(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, size_t size,
                     const struct ebpfMonCauseEvent *cause, ebpfMonPut *put, int *linkChanged);

/* What is to be kept of a put until its result comes. */
typedef struct {
    uint64_t pfldDes, precord;
    int16_t  fieldType, fieldSize;
} ebpfMonPutPlace;

/* put->after, if the field now holds another value than was sent. Under ebpfMonTargetsLock. */
void ebpfMonPutDecodeResult(ebpfMonTarget *t, const ebpfMonPutPlace *at, const struct ebpfMonResultEvent *ev, ebpfMonPut *put);

/* ebpfMonDbf… of a plain type of the CA protocol. */
int ebpfMonPutDecodeCaType(int dbrType);

/* Whether the link at this address of the target now is what "put" wrote: link fields are not written by
 * dbPut, whose result is seen. Sets put->result, and leaves it where the link is of a kind that has no name. */
void ebpfMonPutDecodeLinkResult(ebpfMonTarget *t, uint64_t linkAt, ebpfMonPut *put);

#endif
