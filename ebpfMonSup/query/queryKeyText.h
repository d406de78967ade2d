/* SPDX-License-Identifier: BSD-3-Clause */
/* A key of a query as people read it. The query thread only. */
#ifndef EBPFMON_QUERYKEYTEXT_H
#define EBPFMON_QUERYKEYTEXT_H

#include "ebpfMonQuery.h"
#include "watch/target.h"

/* Where a function of an IOC is probed. */
typedef struct {
    uint32_t iocId;
    uint64_t address;
    char     name[64];
} ebpfMonQueryFunction;

/* Where names come from. */
typedef struct {
    ebpfMonTargets *targets; /* of IOCs and records; NULL: none are known */
    ebpfMonQueryFunction *function;
    size_t functions, room;
} ebpfMonQueryNames;

/* Writes the name or the number of the field at "key". Takes the targets lock for names of IOCs and records. A record or
 * function that is not known is shown by its address; no record, or no IOC, is "-". */
void ebpfMonQueryKeyText(const struct ebpfMonQueryField *field, const uint8_t *key, const ebpfMonQueryNames *names, char *text,
                         size_t size);

#endif
