/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains that are printed at the shell as they are kept: all that has happened to a record, and what came before. */
#ifndef EBPFMON_TRACEPRINTER_H
#define EBPFMON_TRACEPRINTER_H

#include "watch/target.h"

/* The next "count" chains in which a record that matches processes; 0: no more. 0, or -1 with a message. */
long ebpfMonTracePrinterStart(const char *pattern, unsigned count);

/* Event thread. Nonzero while chains are asked for. */
int ebpfMonTracePrinterIsOn(void);
int ebpfMonTracePrinterMatches(const char *record);
/* Prints one that matched, and counts it; by a thread of its own. While many wait for the terminal more are passed over. */
void ebpfMonTracePrinterPrint(const char *text);

#endif
