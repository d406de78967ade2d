/* SPDX-License-Identifier: BSD-3-Clause */
/* ebpfMonTrace: prints chains at the shell as they are kept. A thread of its own prints, because a terminal that is
 * not read must not hold up any other thread. */
#ifndef EBPFMON_TRACEPRINTER_H
#define EBPFMON_TRACEPRINTER_H

#include "common/textReport.h"
#include "watch/target.h"

#define EBPFMON_TRACES_WAITING 64 /* for the terminal; while so many wait, further ones are not printed */

typedef struct ebpfMonTracePrinter ebpfMonTracePrinter;

/* Starts the thread; NULL without memory. "targets" stays the caller's. "print" writes a text to the terminal, by
 * that thread; it may take any time. */
ebpfMonTracePrinter *ebpfMonTracePrinterNew(ebpfMonTargets *targets, void (*print)(const char *text));

/* Ends the thread; what is added from now on is not printed. 0, or -1: it still waits for the terminal, and uses the
 * printer. */
int ebpfMonTracePrinterStop(ebpfMonTracePrinter *printer);

/* Stops the thread and frees the printer; nobody may use it any more. If the thread cannot be stopped, the printer
 * stays in memory for it. NULL does no harm. */
void ebpfMonTracePrinterFree(ebpfMonTracePrinter *printer);

/* The next "count" chains in which a record that matches processes; 0: no more. Adds to "report" of which IOCs not every
 * chain is kept. 0, or -1 and why. Takes the targets lock. Any thread. */
int ebpfMonTracePrinterSetPattern(ebpfMonTracePrinter *printer, ebpfMonTextReport *report, const char *pattern,
                                  unsigned count, char *why, size_t size);

/* Nonzero while chains are asked for. Any thread. */
int ebpfMonTracePrinterIsOn(ebpfMonTracePrinter *printer);
int ebpfMonTracePrinterMatches(ebpfMonTracePrinter *printer, const char *record);

/* Prints a chain that matched, and counts it. Never waits. Any thread. */
void ebpfMonTracePrinterAdd(ebpfMonTracePrinter *printer, const char *text);

#endif
