/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts after which a record may have to be counted in another way: to link fields, and to those that decide whether its
 * time stamp shows each processing. No state. Event thread, under ebpfMonTargetsLock.
 */
#ifndef EBPFMON_LINKPUTDECODE_H
#define EBPFMON_LINKPUTDECODE_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "watch/target.h"

typedef struct {
    uint64_t precord; /* 0: there is no such put */
    uint64_t pfldDes; /* the field */
    int      isLink;
} ebpfMonLinkPut;

/* "ev": complete, as long as it says; "f": its field, NULL: not known; "put": with its values. change->precord is 0 if
 * the put is of another kind. Notes what may process uncounted until the follower has read the record
 * (ebpfMonTargetNoteUnseen). */
void ebpfMonLinkPutDecode(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const ebpfMonField *f,
                          const ebpfMonPut *put, ebpfMonLinkPut *change);

#endif
