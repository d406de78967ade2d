/* SPDX-License-Identifier: BSD-3-Clause */
/* One page about a time, for a logbook: Markdown. For the program ebpfMonHistory. One thread. */
#ifndef EBPFMON_HISTORYREPORT_H
#define EBPFMON_HISTORYREPORT_H

#include "history/historyAsk.h"

/* Only file, from and to of the question count; both times must be set. 0; -1: "why" says what is wrong. */
int ebpfMonHistoryWriteReport(const ebpfMonHistoryQuestion *question, FILE *out, char *why, size_t size);

#endif
