/* SPDX-License-Identifier: BSD-3-Clause */
/* One page about a time, for a logbook: Markdown, or HTML with pictures, which needs no other file. For the program
 * ebpfMonHistory, and for frozen files. One thread. */
#ifndef EBPFMON_HISTORYREPORT_H
#define EBPFMON_HISTORYREPORT_H

#include "history/historyAsk.h"

/* Of the question only file, from, to and form (Html, else Markdown) count; both times must be set. 0; -1: "why" says
 * what is wrong. */
int ebpfMonHistoryWriteReport(const ebpfMonHistoryQuestion *question, FILE *out, char *why, size_t size);

#endif
