/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is wrong with a record, or with the sources of its inputs, for the answer of why.h. Reads the memory of the IOC,
 * and what the core and other modules have published. It says what was read, and guesses nothing.
 */
#ifndef EBPFMON_WHYRECORD_H
#define EBPFMON_WHYRECORD_H

#include "subscriptions/whyPlace.h"

typedef enum { ebpfMonRecordNotRead, ebpfMonRecordFine, ebpfMonRecordUnknown, ebpfMonRecordStops } ebpfMonRecordState;

/* Reads the record twice, 0.3 s apart, and sets "text". "isStill": it did not process in between. */
ebpfMonRecordState ebpfMonWhyRecord(ebpfMonTargets *targets, const ebpfMonWhyPlace *place, int *isStill, char *text,
                                    size_t size);

/* Why a name is not connected for this client, or for anybody if it is "", as the module queues has published it; "":
 * it has not. Returns "text". */
const char *ebpfMonWhyFindUnconnected(const char *pv, const char *client, char *text, size_t size);

#endif
