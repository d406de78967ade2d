/* SPDX-License-Identifier: BSD-3-Clause */
/* The shell command ebpfMonTrace: prints chains when they are published. A thread of its own prints, because a terminal
 * that nobody reads must not stop another thread. */
#ifndef EBPFMON_TRACEPRINTER_H
#define EBPFMON_TRACEPRINTER_H

#include "common/textReport.h"
#include "watch/target.h"

#define EBPFMON_TRACES_WAITING 64 /* texts that may wait for the terminal; further ones are not printed */

typedef struct ebpfMonTracePrinter ebpfMonTracePrinter;

/* Starts the thread. "targets" stays the caller's. The thread calls "print" to write a text to the terminal; "print"
 * may take any time. NULL: no memory. */
ebpfMonTracePrinter *ebpfMonTracePrinterNew(ebpfMonTargets *targets, void (*print)(const char *text));

/* Ends the thread. What is added later is not printed. 0; or -1: the thread still waits for the terminal, and uses the
 * printer. */
int ebpfMonTracePrinterStop(ebpfMonTracePrinter *printer);

/* Stops the thread and frees the printer. No other thread may use it any more. If the thread does not stop, the printer
 * stays in memory. NULL does no harm. */
void ebpfMonTracePrinterFree(ebpfMonTracePrinter *printer);

/* Prints the next "count" chains that process a record which matches "pattern"; 0: prints no more. Adds to "report" the
 * IOCs that do not keep every chain. 0; or -1, and "why" gets the reason. Takes the targets lock. Any thread. */
int ebpfMonTracePrinterSetPattern(ebpfMonTracePrinter *printer, ebpfMonTextReport *report, const char *pattern,
                                  unsigned count, char *why, size_t size);

/* IsOn: nonzero while some chains must still be printed. Matches: nonzero if so, and the record matches the pattern.
 * Any thread. */
int ebpfMonTracePrinterIsOn(ebpfMonTracePrinter *printer);
int ebpfMonTracePrinterMatches(ebpfMonTracePrinter *printer, const char *record);

/* Gives the text of a chain that matched to the printing thread, and counts it. Copies the text; never waits. Any
 * thread. */
void ebpfMonTracePrinterAdd(ebpfMonTracePrinter *printer, const char *text);

#endif
