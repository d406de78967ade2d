/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers a table of iocsh commands, and has what their functions share. The thread of the shell only, if nothing
 * else is said. */
#ifndef EBPFMON_SHELLCOMMAND_H
#define EBPFMON_SHELLCOMMAND_H

#include <compilerDependencies.h>
#include <iocsh.h>

#include "ebpfMonModule.h"
#include "model/filter.h"
#include "model/ops.h"

/* Each registers the iocsh commands of one subject. drvEbpfMon.c calls them, in the thread of the registrars. */

void ebpfMonMonitorShellRegister(void); /* what sets something up: start, filter, levels, operators, rules, logs */
void ebpfMonListShellRegister(void);    /* IOCs, records, puts, chains, traces, searches */
void ebpfMonConsoleShellRegister(void); /* a console at a socket */

#define EBPFMON_COMMAND_ARGS 10
#define EBPFMON_NO_ARGS {{NULL, iocshArgInt}}

typedef struct {
    const char *name;
    /* Runs the command; args[i] has the type of argument i. It calls ebpfMonShellSetStatus if it failed. */
    void (*run)(const iocshArgBuf *args);
    iocshArg    args[EBPFMON_COMMAND_ARGS]; /* ends with the first one without a name */
    const char *usage;
} ebpfMonShellCommand;

/* Registers the commands. The table stays the caller's, and must never be freed, because iocsh keeps pointers to it. */
void ebpfMonShellRegisterCommands(const ebpfMonShellCommand *commands, unsigned count);

/* The same, and adds a module. "arg": the first argument of its functions; NULL: no memory, and the process ends. */
void ebpfMonShellAddModule(ebpfMonModule *module, void *arg, const ebpfMonShellCommand *commands, unsigned count);

/* Nonzero: the user typed this argument of type string; "" counts as left out. */
int ebpfMonShellHasText(const char *argument);

/* Returns the argument, or "otherwise" if it was left out. */
const char *ebpfMonShellGetText(const char *argument, const char *otherwise);

/* Reads an argument that is a pattern; "*" if it was left out. "what": the name of the pattern in messages. 0; or -1,
 * the pattern is refused, a message was printed, and the status of the command is set. */
int ebpfMonShellReadPattern(const char *command, const char *argument, const char *what,
                            char pattern[EBPFMON_PATTERN_SIZE]);

/* The command failed: prints why to the error log, with a line feed, and sets the status. */
void ebpfMonShellFail(const char *format, ...) EPICS_PRINTF_STYLE(1, 2);

/* Sets the status of the command; nonzero: it failed. The iocsh command "on error" uses it. */
void ebpfMonShellSetStatus(long status);

/* The logs of puts. NULL: there are none, because the monitor is not registered: a message says so, and the status is
 * set. */
struct ebpfMonPutLogs *ebpfMonShellGetLogs(void);

/* Resets the counts of what was lost: of the monitor, and of the logs. Any thread. */
void ebpfMonShellResetLost(void);

/* If the operation failed, prints to the error log what to do. "caller": the command, or the function of ebpfMon.h;
 * "why": the reason that the operation gave, for ebpfMonOpRefused. 0, or -1: it failed. Any thread. */
int ebpfMonShellCheckOp(const char *caller, ebpfMonOpStatus status, const char *why);

/* Ends a command that prints: prints the report, or what to do if the operation failed. Sets the status of the
 * command, and frees the report. */
void ebpfMonShellPrintReport(const char *command, ebpfMonTextReport *report, ebpfMonOpStatus status, const char *why);

#endif
