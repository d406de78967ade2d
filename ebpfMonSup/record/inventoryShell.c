/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands of the inventory. */
#include <string.h>

#include <epicsStdio.h>
#include <errlog.h>

#include "model/monitorOps.h"
#include "record/shell.h"
#include "record/shellCommand.h"

#define RECSYNC_PORT 5049

static void refuse(const char *why)
{
    errlogSevPrintf(errlogMajor, "ebpfMonRecSync: %s\n", why);
    ebpfMonShellSetStatus(-1);
}

static void setRecSync(const iocshArgBuf *args)
{
    const char *state = ebpfMonShellGetText(args[0].sval, ""), *variables = ebpfMonShellGetText(args[2].sval, "");
    ebpfMonRecSyncConf conf = { .isOn = strcmp(state, "on") == 0, .port = RECSYNC_PORT };

    if (!conf.isOn && strcmp(state, "off") != 0) {
        refuse("say on or off");
        return;
    }
    if (args[1].ival < 0 || args[1].ival > 65535) {
        refuse("the port is a number up to 65535");
        return;
    }
    if (strlen(variables) >= sizeof(conf.variables)) {
        refuse("too many names of variables");
        return;
    }
    if (args[1].ival)
        conf.port = (unsigned)args[1].ival;
    strcpy(conf.variables, variables);
    ebpfMonShellSetStatus(ebpfMonShellCheckOp("ebpfMonRecSync", ebpfMonMonitorOpsGet()->setRecSync(&conf), ""));
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonRecSync", setRecSync, {{"state", iocshArgString}, {"port", iocshArgInt}, {"variables", iocshArgString}},
     "Announces the records of all watched IOCs to a RecSync server (RecCeiver), for Channel Finder.\n"
     "  state      on or off. It is off until this command\n"
     "  port       UDP port to which servers announce themselves (5049)\n"
     "  variables  names of environment variables of the IOCs to send, besides the usual ones\n"
     "Example: ebpfMonRecSync on 0 \"SECTOR BUILDING\"\n"}
};

void ebpfMonInventoryShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
