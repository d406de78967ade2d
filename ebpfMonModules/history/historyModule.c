/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its command, its registration. */

#include <dbDefs.h>
#include <epicsExport.h>

#include "history/history.h"
#include "history/historyReplay.h"
#include "record/shellCommand.h"

#define VALUE(member) offsetof(ebpfMonHistoryValues, member)

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonHistory *history;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonHistoryGetValues(history);
}

static ebpfMonPv pvs[] = {
    {"HISTORY_ROW_CNT", 0, getValues, ebpfMonCellCount, VALUE(rows)},
    {"HISTORY_LOST_CNT", 0, getValues, ebpfMonCellCount, VALUE(lost), .severity = 1 + VALUE(losing)},
    {"HISTORY_STATE", 0, getValues, ebpfMonCellInt, VALUE(state), 1},
    {"HISTORY_MSG", 0, getValues, ebpfMonCellText, VALUE(message), 1},
};

static int startModule(void *arg, const ebpfMonModuleCore *core);

static ebpfMonModule module = {
    .name = "history", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = startModule, .stop = ebpfMonHistoryStop,
    .put = ebpfMonHistoryAddPut, .trace = ebpfMonHistoryAddTrace, .event = ebpfMonHistoryAddEvent,
    .second = ebpfMonHistoryLook,
};

static int startModule(void *arg, const ebpfMonModuleCore *core)
{
    int status = ebpfMonHistoryStart(arg, core);

    module.packet = ebpfMonHistoryKeepsPackets(history) ? ebpfMonHistoryAddPacket : NULL;
    module.message = module.packet ? ebpfMonHistoryAddMessage : NULL;
    return status;
}

static void keepHistory(const iocshArgBuf *args)
{
    char why[200];

    if (ebpfMonHistoryConfigure(history, args[0].sval, args[1].ival, args[2].ival, args[3].sval, why, sizeof(why)) == 0)
        return;
    ebpfMonShellFail("ebpfMonHistoryKeep: %s\n", why);
}

static void keepRing(const iocshArgBuf *args)
{
    char why[200];

    if (ebpfMonHistoryKeepRing(history, args[0].sval, args[1].ival, args[2].sval, why, sizeof(why)) == 0)
        return;
    ebpfMonShellFail("ebpfMonHistoryRing: %s\n", why);
}

static void freezeRing(const iocshArgBuf *args)
{
    if (ebpfMonHistoryFreeze(history, args[0].sval) == 0)
        return;
    ebpfMonShellFail("ebpfMonHistoryFreeze: nothing is kept. Give ebpfMonHistoryKeep and "
                     "ebpfMonHistoryRing before iocInit\n");
}

static void replayFile(const iocshArgBuf *args)
{
    char why[200];

    if (ebpfMonHistoryReplay(args[0].sval, args[1].sval, why, sizeof(why)) == 0)
        return;
    ebpfMonShellFail("ebpfMonReplay: %s\n", why);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonHistoryKeep", keepHistory,
     {{"file", iocshArgString}, {"megabytes", iocshArgInt}, {"days", iocshArgInt}, {"leaveOut", iocshArgString}},
     "Keeps puts, events of IOCs, slow chains and gaps in this file (SQLite), before iocInit.\n"
     "  megabytes, days  how much and how long (1024, 30); the oldest rows go first\n"
     "  leaveOut         \"values\", \"names\" (users and hosts), or both: what is not kept\n"
     "The program ebpfMonHistory asks it.\n"
     "Example: ebpfMonHistoryKeep \"/var/lib/ebpfmon/history.sqlite\" 1024 30\n"},
    {"ebpfMonHistoryRing", keepRing,
     {{"folder", iocshArgString}, {"megabytes", iocshArgInt}, {"packets", iocshArgString}},
     "Keeps the newest rows of the history in memory, each put by itself, and packets, before iocInit. They are\n"
     "written to files of this folder when the rules do not expect a put, when an IOC ends or stands still, when a\n"
     "thread hangs, when a scan takes more than twice its period, and by ebpfMonHistoryFreeze or SIGUSR1.\n"
     "  megabytes        of memory (64); a quarter is for packets\n"
     "  packets          \"\": their headers, \"payload\": all of them, \"none\"\n"
     "Example: ebpfMonHistoryRing \"/var/lib/ebpfmon\" 64\n"},
    {"ebpfMonHistoryFreeze", freezeRing, {{"note", iocshArgString}},
     "Writes the newest rows (ebpfMonHistoryRing) to a file now. The note says why.\n"
     "Example: ebpfMonHistoryFreeze \"beam lost\"\n"},
    {"ebpfMonReplay", replayFile, {{"file", iocshArgString}, {"prefix", iocshArgString}},
     "Shows a file of the history by the PVs of the monitor, which watches nothing then; before iocInit. REPLAY_TIME,\n"
     "REPLAY_SPEED and REPLAY_STEP (ebpfMonReplay.db with this prefix) set the time.\n"
     "Example: ebpfMonReplay \"frozen-20261128T031005Z.sqlite\" \"REPLAY:\"\n"},
};

static void ebpfMonHistoryRegistrar(void)
{
    history = ebpfMonHistoryNew(&module);
    ebpfMonShellAddModule(&module, history, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonHistoryRegistrar);
