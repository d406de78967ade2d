/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its commands, the device support of questions, its registration. */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <string.h>

#include <alarm.h>
#include <dbAccess.h>
#include <dbDefs.h>
#include <devSup.h>
#include <epicsExport.h>
#include <lsoRecord.h>
#include <recGbl.h>

#include "access/guard.h"
#include "history/history.h"
#include "history/historyFound.h"
#include "history/historyReplay.h"
#include "record/shellCommand.h"

#define VALUE(member) offsetof(ebpfMonHistoryValues, member)

#define FOUND(member) offsetof(ebpfMonHistoryFound, member)
#define ROW(member)   offsetof(ebpfMonHistoryFoundRow, member)

/* One each per process, because Base calls registrars, commands and device support without a context. */
static ebpfMonHistory *history;
static ebpfMonHistoryFinder *finder;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonHistoryGetValues(history);
}

static const void *getFound(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonHistoryFinderGet(finder);
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonHistoryFound *found = ebpfMonHistoryFinderGet(finder);

    return index < found->rows ? &found->row[found->rows - 1 - index] : NULL;
}

static ebpfMonPv pvs[] = {
    {"HISTORY_ROW_CNT", 0, getValues, ebpfMonCellCount, VALUE(rows)},
    {"HISTORY_STATE", 0, getValues, ebpfMonCellInt, VALUE(state), 1, .cause = 1 + VALUE(message), .light = 2},
    {"HISTORY_LOST_CNT", 0, getValues, ebpfMonCellCount, VALUE(lost), .severity = 1 + VALUE(losing),
     .cause = 1 + VALUE(losingText), .light = 2},
    {"HISTORY_MSG", 0, getValues, ebpfMonCellText, VALUE(message), 1},
    {"HISTORY_FOUND_MSG", 0, getFound, ebpfMonCellText, FOUND(message), 1},
    {"HISTORY_TEXT", 0, getFound, ebpfMonCellLines, FOUND(text), 1},
    {"HISTORY_TIMES", 0, getRow, ebpfMonCellText, ROW(time)},
    {"HISTORY_PVS", 0, getRow, ebpfMonCellText, ROW(pv)},
    {"HISTORY_OLD_VALUES", 0, getRow, ebpfMonCellText, ROW(old)},
    {"HISTORY_VALUES", 0, getRow, ebpfMonCellText, ROW(value)},
    {"HISTORY_WRITERS", 0, getRow, ebpfMonCellText, ROW(who)},
    {"HISTORY_RESULTS", 0, getRow, ebpfMonCellText, ROW(result)},
    {"HISTORY_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
};

static int startModule(void *arg, const ebpfMonModuleCore *core);
static int stopModule(void *arg, double seconds);

static ebpfMonModule module = {
    .name = "history", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = startModule, .stop = stopModule,
    .put = ebpfMonHistoryAddPut, .trace = ebpfMonHistoryAddTrace, .event = ebpfMonHistoryAddEvent,
    .second = ebpfMonHistoryLook,
};

static int startModule(void *arg, const ebpfMonModuleCore *core)
{
    int status = ebpfMonHistoryStart(arg, core);

    module.packet = ebpfMonHistoryKeepsPackets(history) ? ebpfMonHistoryAddPacket : NULL;
    module.message = module.packet ? ebpfMonHistoryAddMessage : NULL;
    if (status == 0 && ebpfMonHistoryGetFile(history)[0])
        status = ebpfMonHistoryFinderStart(finder, ebpfMonHistoryGetFile(history));
    return status;
}

static int stopModule(void *arg, double seconds)
{
    return ebpfMonHistoryFinderStop(finder, seconds / 2) | ebpfMonHistoryStop(arg, seconds / 2);
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
     "thread hangs, at a deadlock, when a scan takes more than twice its period, and by ebpfMonHistoryFreeze or\n"
     "SIGUSR1.\n"
     "  megabytes        of memory (64); a quarter is for packets\n"
     "  packets          \"\": their headers, \"payload\": all of them, \"none\"\n"
     "Example: ebpfMonHistoryRing \"/var/lib/ebpfmon\" 64\n"},
    {"ebpfMonHistoryFreeze", freezeRing, {{"note", iocshArgString}},
     "Writes the newest rows (ebpfMonHistoryRing) to a file now. The note says why.\n"
     "Example: ebpfMonHistoryFreeze \"beam lost\"\n"},
    {"ebpfMonReplay", replayFile, {{"file", iocshArgString}, {"prefix", iocshArgString}},
     "Shows a file of the history by the PVs of the monitor, which watches nothing then; before iocInit. REPLAY_TIME,\n"
     "REPLAY_SPEED and REPLAY_STEP (ebpfMonReplay.db with this prefix) set the time.\n"
     "Example: ebpfMonReplay \"frozen-20261128T031005Z.tar\" \"REPLAY:\"\n"},
};

/* --- questions of clients --- */

static long askHistory(lsoRecord *prec)
{
    static const char *const parts[ebpfMonAskParts] = { "FROM", "TO", "PV", "USER" };

    if (!ebpfMonGuardAccepts((dbCommon *)prec))
        return EBPFMON_GUARD_REFUSED;
    if (strcmp(prec->out.value.instio.string, "FREEZE") == 0 && ebpfMonHistoryFreeze(history, prec->val))
        recGblSetSevrMsg(prec, WRITE_ALARM, INVALID_ALARM, "no ebpfMonHistoryRing");
    for (int i = 0; i < ebpfMonAskParts; i++)
        if (strcmp(prec->out.value.instio.string, parts[i]) == 0)
            ebpfMonHistoryFinderAsk(finder, (ebpfMonAskPart)i, prec->val);
    return 0;
}

static lsodset devEbpfMonHistory = {{5, NULL, NULL, ebpfMonGuardAdd, NULL}, askHistory};
epicsExportAddress(dset, devEbpfMonHistory);

static void ebpfMonHistoryRegistrar(void)
{
    history = ebpfMonHistoryNew(&module);
    finder = ebpfMonHistoryFinderNew(&module);
    ebpfMonShellAddModule(&module, history, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonHistoryRegistrar);
