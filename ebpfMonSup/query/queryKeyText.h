/* SPDX-License-Identifier: BSD-3-Clause */
/* A key of a query as people read it. The query thread only. */
#ifndef EBPFMON_QUERYKEYTEXT_H
#define EBPFMON_QUERYKEYTEXT_H

#include "ebpfMonQuery.h"
#include "watch/target.h"

/* Writes the name, or the number, that stands at "key". It takes the targets lock for names of IOCs and records; "targets"
 * may be NULL. A record that is not known is its address; no record, or no IOC, is "-". */
void ebpfMonQueryKeyText(const struct ebpfMonQueryField *field, const uint8_t *key, ebpfMonTargets *targets, char *text,
                         size_t size);

#endif
