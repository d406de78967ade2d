/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its commands, the device support of its patterns, its registration. */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <string.h>

#include <alarm.h>
#include <dbAccess.h>
#include <dbDefs.h>
#include <devSup.h>
#include <epicsExport.h>
#include <errlog.h>
#include <lsoRecord.h>
#include <recGbl.h>

#include "access/guard.h"
#include "clients/clients.h"
#include "common/text.h"
#include "model/published.h"
#include "record/shellCommand.h"

#define VALUE(member) offsetof(ebpfMonClientValues, member)
#define ROW(member)   offsetof(ebpfMonClientRow, member)

/* One per process, because Base calls registrars, commands and device support without a context. */
static ebpfMonClients *clients;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index || !clients->shown.isKnown ? NULL : &clients->shown;
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    return index < clients->shown.rows ? &clients->shown.row[index] : NULL;
}

/* In the order of ebpfMonClients.substitutions. */
static ebpfMonPv pvs[] = {
    {"CLIENT_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(count)},
    {"CLIENT_CHANNEL_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(channels)},
    {"CLIENT_SUBSCRIPTION_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(subscriptions)},
    {"CLIENT_UNREAD_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(unread)},
    {"CLIENT_LOOK_TIME", 0, getValues, ebpfMonCellDouble, VALUE(look)},
    {"CLIENT_NAMES", 0, getRow, ebpfMonCellText, ROW(name)},
    {"CLIENT_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
    {"CLIENT_COMMANDS", 0, getRow, ebpfMonCellText, ROW(command)},
    {"CLIENT_PIDS", 0, getRow, ebpfMonCellUnsigned, ROW(pid)},
    {"CLIENT_CHANNEL_CNTS", 0, getRow, ebpfMonCellUnsigned, ROW(channels)},
    {"CLIENT_SUBSCRIPTION_CNTS", 0, getRow, ebpfMonCellUnsigned, ROW(subscriptions)},
    {"CLIENT_BYTE_CNTS", 0, getRow, ebpfMonCellCount, ROW(bytes), .gaps = 1},
    {"CLIENT_TIMES", 0, getRow, ebpfMonCellTime, ROW(since)},
};

static ebpfMonModule module = {
    .name = "clients", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = ebpfMonClientsStart, .stop = ebpfMonClientsStop,
    .message = ebpfMonClientsAddMessage, .servers = ebpfMonClientsFindServers,
    .findChannel = ebpfMonClientsFindChannel,
};

ebpfMonClients *ebpfMonClientsGet(const char *needs)
{
    if (clients && clients->table)
        return clients;
    errlogSevPrintf(errlogMajor, "ebpfMon: the module %s needs the module clients: include ebpfMonClients.dbd, and "
                    "link ebpfMonClients\n", needs);
    return NULL;
}

const ebpfMonClientValues *ebpfMonClientsGetValues(void)
{
    return clients ? &clients->shown : NULL;
}

/* --- commands ---------------------------------------------------------------------------------------------------- */

static void printList(const char *command, const char *argument, const char *what,
                      void (*add)(ebpfMonClients *c, ebpfMonTextReport *report, const char *pattern))
{
    ebpfMonOpStatus status = ebpfMonOpDone;
    char pattern[EBPFMON_PATTERN_SIZE];
    ebpfMonTextReport *report;

    if (ebpfMonShellReadPattern(command, argument, what, pattern))
        return;
    report = ebpfMonTextReportNew();
    if (module.isStarted) {
        add(clients, report, pattern);
    } else {
        status = ebpfMonPublishedLock()->state == ebpfMonFailed ? ebpfMonOpStartFailed : ebpfMonOpNotStarted;
        ebpfMonPublishedUnlock();
    }
    ebpfMonShellPrintReport(command, report, status, "");
}

static void listClients(const iocshArgBuf *args)
{
    printList("ebpfMonClients", args[0].sval, "IOC", ebpfMonClientsAddClients);
}

static void listUsers(const iocshArgBuf *args)
{
    printList("ebpfMonUsers", args[0].sval, "PV", ebpfMonClientsAddUsers);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonClients", listClients, {{"iocPattern", iocshArgString}},
     "Lists the clients of the CA servers of the IOCs that match, read now from the servers' own lists.\n"
     "Without a pattern: all. Example: ebpfMonClients \"vac*\"\n"},
    {"ebpfMonUsers", listUsers, {{"pattern", iocshArgString}},
     "Lists who is connected now to the PVs that match, and how many subscriptions each has.\n"
     "Without a pattern: all. Example: ebpfMonUsers \"RING:*\"\n"}
};

/* --- CLIENT_FILTER_IOC, CLIENT_FILTER_PV ------------------------------------------------------------------------- */

static int isOfPvs(const lsoRecord *prec)
{
    return strcmp(prec->out.value.instio.string, "CLIENT_FILTER_PV") == 0;
}

static long writePattern(lsoRecord *prec)
{
    char pattern[EBPFMON_PATTERN_SIZE], why[240];
    char message[sizeof(prec->amsg) - 1]; /* recGblSetSevrVMsg (recGbl.c) takes no more */

    if (!ebpfMonGuardAccepts((dbCommon *)prec))
        return EBPFMON_GUARD_REFUSED;
    if (strlen(prec->val) >= EBPFMON_CLIENT_PATTERN) {
        recGblSetSevrMsg(prec, WRITE_ALARM, INVALID_ALARM, "pattern has more than %d characters",
                         EBPFMON_CLIENT_PATTERN - 1);
        return -1;
    }
    if (ebpfMonPatternRead(pattern, prec->val, isOfPvs(prec) ? "PV" : "IOC", why, sizeof(why))) {
        ebpfMonTextCopy(message, sizeof(message), why);
        recGblSetSevrMsg(prec, WRITE_ALARM, INVALID_ALARM, "%s", message);
        return -1;
    }
    ebpfMonClientsSelect(clients, isOfPvs(prec) ? NULL : prec->val, isOfPvs(prec) ? prec->val : NULL);
    return 0;
}

static lsodset devEbpfMonClients = {{5, NULL, NULL, ebpfMonGuardAdd, NULL}, writePattern};
epicsExportAddress(dset, devEbpfMonClients);

static void ebpfMonClientsRegistrar(void)
{
    clients = ebpfMonClientsNew(&module);
    ebpfMonShellAddModule(&module, clients, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonClientsRegistrar);
