/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of iocsh commands, and what their functions share. The thread of the shell only. */
#ifndef EBPFMON_SHELLCOMMAND_H
#define EBPFMON_SHELLCOMMAND_H

#include <iocsh.h>

#include "model/monitorOps.h"

#define EBPFMON_COMMAND_ARGS 10
#define EBPFMON_NO_ARGS {{NULL, iocshArgInt}}

typedef struct {
    const char *name;
    /* args[i] is of the type of argument i. Tells by ebpfMonShellSetStatus if it failed. */
    void (*run)(const iocshArgBuf *args);
    iocshArg    args[EBPFMON_COMMAND_ARGS]; /* up to the first without a name */
    const char *usage;
} ebpfMonShellCommand;

/* The table stays the caller's, and must stay. */
void ebpfMonShellRegisterCommands(const ebpfMonShellCommand *commands, unsigned count);

/* Whether an argument of type string was typed; "" counts as left out. */
int ebpfMonShellHasText(const char *argument);

/* An argument that may be left out. */
const char *ebpfMonShellGetText(const char *argument, const char *otherwise);

/* Nonzero: the command failed. A script that runs under "on error" goes by it. */
void ebpfMonShellSetStatus(long status);

/* Says what to do if the operation failed. "caller": the command, or the function of ebpfMon.h. "why": what the operation
 * left. 0, or -1 if it failed. Any thread. */
int ebpfMonShellCheckOp(const char *caller, ebpfMonOpStatus status, const char *why);

/* The end of a command that prints: what the operation added to "report", or what to do. Frees the report. */
void ebpfMonShellPrintReport(const char *command, ebpfMonTextReport *report, ebpfMonOpStatus status, const char *why);

#endif
