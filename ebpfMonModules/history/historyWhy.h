/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a PV had its value: what led to the last put before a time, and what followed from it, in all IOCs of the host.
 * For the program ebpfMonHistory. One thread. */
#ifndef EBPFMON_HISTORYWHY_H
#define EBPFMON_HISTORYWHY_H

#include "history/historyAsk.h"

/* With files of other hosts a put that one host sent and the other received joins both: it has the same client
 * (address:port), PV and value in both, within a minute. If several have, the nearest is taken, and the answer says
 * "perhaps".
 * "time": as for ebpfMonHistoryParseTime; as precise as it is written: 03:10:05 is the whole second. Of the question
 * only file, pv and form are used: text, JSON, or OTLP (one trace with all causes and effects, for collectors and
 * Jaeger). The answer says "not known" of what is not kept. 1: a put was found; 0: none; -1: "why" says what is
 * wrong. */
int ebpfMonHistoryWhy(const ebpfMonHistoryQuestion *question, const char *time, int64_t now, FILE *out, char *why,
                      size_t size);

#endif
