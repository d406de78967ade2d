/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands that say who may write to the monitor's PVs. */
#include <epicsStdio.h>
#include <errlog.h>

#include "access/guard.h"
#include "record/shellCommand.h"

typedef int (*operatorSetter)(ebpfMonOperators *operators, const char *list, char *text, size_t size);

static void setOperators(const char *command, const char *list, operatorSetter set)
{
    ebpfMonOperators *operators = ebpfMonJudgeSetOperators();
    char text[256] = "";
    int status = 0;

    if (ebpfMonShellHasText(list)) {
        if (!operators)
            snprintf(text, sizeof(text), "the operators cannot be changed after iocInit: write this command before "
                     "iocInit");
        status = operators ? set(operators, list, text, sizeof(text)) : -1;
    }
    if (status)
        errlogSevPrintf(errlogMajor, "%s: %s\n", command, text);
    else
        ebpfMonGuardReport(0);
    ebpfMonShellSetStatus(status);
}

static void setUsers(const iocshArgBuf *args)
{
    setOperators("ebpfMonOperators", args[0].sval, ebpfMonOperatorsSetUsers);
}

static void setHosts(const iocshArgBuf *args)
{
    setOperators("ebpfMonOperatorHosts", args[0].sval, ebpfMonOperatorsSetHosts);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonOperators", setUsers, {{"users", iocshArgString}},
     "Sets the users of this host who may write to the monitor's PVs: names or uids. The kernel says\n"
     "which user a client is; the name that the client claims does not matter. Call it before iocInit.\n"
     "The list replaces the default (root and the user that runs the IOC). Without a list: prints it.\n"
     "Example: ebpfMonOperators \"root operator\"\n"},
    {"ebpfMonOperatorHosts", setHosts, {{"addresses", iocshArgString}},
     "Sets the other hosts from which clients may write to the monitor's PVs: numeric IPv4 addresses.\n"
     "Every user of such a host may write. Call it before iocInit. The default is none. Without a list:\n"
     "prints it. Example: ebpfMonOperatorHosts \"10.0.0.5 10.0.0.6\"\n"}
};

void ebpfMonAccessShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
