/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <cantProceed.h>
#include <errlog.h>

#include "export/log/putLogs.h"
#include "model/filter.h"
#include "record/shellCommand.h"

void ebpfMonShellRegisterCommands(const ebpfMonShellCommand *commands, unsigned count)
{
    /* iocsh keeps the pointers: this memory is never freed */
    iocshFuncDef *defs = callocMustSucceed(count, sizeof(*defs), "ebpfMonShellRegisterCommands");
    const iocshArg **args = callocMustSucceed(count * EBPFMON_COMMAND_ARGS, sizeof(*args),
                                              "ebpfMonShellRegisterCommands");

    for (unsigned i = 0; i < count; i++, args += EBPFMON_COMMAND_ARGS) {
        const ebpfMonShellCommand *command = &commands[i];
        int n = 0;

        for (; n < EBPFMON_COMMAND_ARGS && command->args[n].name; n++)
            args[n] = &command->args[n];
        defs[i].name = command->name;
        defs[i].nargs = n;
        defs[i].arg = args;
#ifdef IOCSHFUNCDEF_HAS_USAGE /* Base before 7.0.3 has no place for it */
        defs[i].usage = command->usage;
#endif
        iocshRegister(&defs[i], command->run);
    }
}

void ebpfMonShellAddModule(ebpfMonModule *module, void *arg, const ebpfMonShellCommand *commands, unsigned count)
{
    if (!arg)
        cantProceed("ebpfMon: no memory for the module %s", module->name);
    module->arg = arg;
    ebpfMonModuleAdd(module);
    ebpfMonShellRegisterCommands(commands, count);
}

int ebpfMonShellHasText(const char *argument)
{
    return argument && argument[0];
}

const char *ebpfMonShellGetText(const char *argument, const char *otherwise)
{
    return ebpfMonShellHasText(argument) ? argument : otherwise;
}

int ebpfMonShellReadPattern(const char *command, const char *argument, const char *what,
                            char pattern[EBPFMON_PATTERN_SIZE])
{
    char why[240];

    if (ebpfMonPatternRead(pattern, argument ? argument : "", what, why, sizeof(why)) == 0)
        return 0;
    ebpfMonShellSetStatus(ebpfMonShellCheckOp(command, ebpfMonOpRefused, why));
    return -1;
}

void ebpfMonShellFail(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    errlogSevVprintf(errlogMajor, format, ap);
    va_end(ap);
    ebpfMonShellSetStatus(-1);
}

void ebpfMonShellSetStatus(long status)
{
    iocshSetError(status ? -1 : 0);
}

void ebpfMonShellResetLost(void)
{
    const ebpfMonOps *ops = ebpfMonOpsGet();

    ops->monitor->resetLost(ops->monitor->arg);
    if (ops->logs)
        ebpfMonPutLogsResetLost(ops->logs);
}

ebpfMonPutLogs *ebpfMonShellGetLogs(void)
{
    ebpfMonPutLogs *logs = ebpfMonOpsGet()->logs;

    if (!logs)
        ebpfMonShellFail("ebpfMon: the logs are not linked in, or not registered. Call "
                         "ebpfMon_registerRecordDeviceDriver first.\n");
    return logs;
}

int ebpfMonShellCheckOp(const char *caller, ebpfMonOpStatus status, const char *why)
{
    char full[240];

    switch (status) {
    case ebpfMonOpDone:
        return 0;
    case ebpfMonOpRefused:
        break;
    case ebpfMonOpFull:
        snprintf(full, sizeof(full), "there are %d patterns already. ebpfMonReport 1 lists them. Cancel one by "
                 "ebpfMonLevel PATTERN filter or ebpfMonReference PATTERN 0, or use one pattern for several IOCs",
                 EBPFMON_LEVEL_RULES_MAX);
        why = full;
        break;
    case ebpfMonOpNotStarted:
        why = "ebpfMon does not run (it starts with iocInit)";
        break;
    case ebpfMonOpStartFailed:
        why = "ebpfMon does not run (see the PV STATE_MSG; ebpfMonStart tries again)";
        break;
    case ebpfMonOpAbsent:
        why = "ebpfMon is not there: this IOC is not linked with it, or it is not registered yet. Call "
              "ebpfMon_registerRecordDeviceDriver first";
        break;
    }
    errlogSevPrintf(errlogMajor, "%s: %s\n", caller, why);
    return -1;
}

void ebpfMonShellPrintReport(const char *command, ebpfMonTextReport *report, ebpfMonOpStatus status, const char *why)
{
    if (status == ebpfMonOpDone)
        ebpfMonTextReportPrint(report);
    else
        ebpfMonTextReportFree(report);
    ebpfMonShellSetStatus(ebpfMonShellCheckOp(command, status, why));
}
