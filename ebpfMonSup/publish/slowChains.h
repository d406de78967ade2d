/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Publishes traces as text: to the published values, and to the shell if ebpfMonTrace asks for them. To write a text
 * takes longer than all else that is done for a trace, and when many come, nobody sees most of them. So traces are
 * held for some milliseconds, and only those are written that find room in the PV. Event thread only.
 */
#ifndef EBPFMON_SLOWCHAINS_H
#define EBPFMON_SLOWCHAINS_H

#include <stddef.h>
#include "common/textReport.h"
#include "trace/traceWalk.h"
#include "watch/target.h"

/* --- printing ---
 *
 * The shell command ebpfMonTrace: prints chains when they are published. A thread of its own prints, because a terminal
 * that nobody reads must not stop another thread.
 */

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

/* --- slow chains --- */

typedef struct ebpfMonSlowChains ebpfMonSlowChains;

/* "targets", "printer" and "walk" stay the caller's. NULL without memory. */
ebpfMonSlowChains *ebpfMonSlowChainsNew(ebpfMonTargets *targets, ebpfMonTracePrinter *printer, ebpfMonTraceWalk *walk);
void ebpfMonSlowChainsFree(ebpfMonSlowChains *slow); /* NULL does no harm */

/* Takes a trace that is complete, or that cannot become complete any more, if the filter shows one of its records.
 * Nonzero: the trace is this module's now, which frees it. "unixOffset": what to add to monotonic time to get the time
 * since 1970, ns. Under the targets lock. */
int ebpfMonSlowChainsAdd(ebpfMonSlowChains *slow, ebpfMonTarget *t, ebpfMonTrace *trace, uint64_t unixOffset);

/* Nonzero: ebpfMonSlowChainsAdd would print this trace. Under the targets lock. */
int ebpfMonSlowChainsPrints(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace);

/* Writes what is held, if it is due, or in any case; notifies the group ebpfMonGroupSlow. Call it when events were
 * read, and at the time that GetDue returns (monotonic ns; UINT64_MAX: never). Not under the targets lock. */
void ebpfMonSlowChainsTick(ebpfMonSlowChains *slow, uint64_t now, int all);
uint64_t ebpfMonSlowChainsGetDue(const ebpfMonSlowChains *slow);

/* Inserts "length" characters of text (whole traces, whose lines begin with spaces, except the first) at the beginning
 * of "buf". If there is no room for everything, the last traces of "buf" are dropped. */
void ebpfMonSlowChainsPrepend(char *buf, size_t size, const char *text, size_t length);

#endif
