/* SPDX-License-Identifier: BSD-3-Clause */
/* Device support of commands and choices of an operator, DTYP "ebpfMon": bo "@LOST_RESET", "@IOC_GONE_ACK",
 * "@LOG_ROTATE", "@PUT_BAD_ACK", "@RULES_LOAD"; lso "@CHAIN_HIST_ROOT".
 * DTYP "ebpfMon filter": ao, longout, mbbo and lso for the inputs of the filter, which OUT processes. */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <string.h>

#include <alarm.h>
#include <aoRecord.h>
#include <boRecord.h>
#include <dbAccess.h>
#include <devSup.h>
#include <epicsExport.h>
#include <errlog.h>
#include <link.h>
#include <longoutRecord.h>
#include <lsoRecord.h>
#include <mbboRecord.h>
#include <recGbl.h>

#include "access/guard.h"
#include "export/log/putLogs.h"
#include "model/filter.h"
#include "model/published.h"
#include "model/ops.h"
#include "record/shellCommand.h"
#include "rules/rules.h"

#define DONE_NO_CONVERT 2 /* ao, bo, mbbo: do not set VAL from RVAL */

static int isCommand(dbCommon *prec, const char *name)
{
    DBLINK *link = dbGetDevLink(prec);

    return link && link->type == INST_IO && strcmp(link->value.instio.string, name) == 0;
}

static long refuseName(dbCommon *prec, const char *names)
{
    errlogSevPrintf(errlogMajor, "%s: OUT must be %s\n", prec->name, names);
    return S_dev_badOutType;
}

static void resetLostByRecord(boRecord *prec)
{
    ebpfMonShellResetLost();
}

static void acknowledgeGoneByRecord(boRecord *prec)
{
    const ebpfMonMonitorOps *monitor = ebpfMonOpsGet()->monitor;

    monitor->acknowledgeGone(monitor->arg);
}

static void rotateLogsByRecord(boRecord *prec)
{
    ebpfMonPutLogs *logs = ebpfMonShellGetLogs();

    if (logs)
        ebpfMonPutLogsRotate(logs);
}

static void acknowledgeByRecord(boRecord *prec)
{
    ebpfMonPublishedAcknowledge(ebpfMonShownByPvs);
}

static void loadRulesByRecord(boRecord *prec)
{
    char text[512];

    if (ebpfMonRulesFileLoad(ebpfMonOpsGet()->rules, NULL, text, sizeof(text)))
        recGblSetSevrMsg(prec, WRITE_ALARM, MINOR_ALARM, "refused, see RULES_MSG");
}

static const struct command {
    const char *name;
    void (*act)(boRecord *prec);
} commands[] = {{"LOST_RESET", resetLostByRecord},
                {"IOC_GONE_ACK", acknowledgeGoneByRecord},
                {"LOG_ROTATE", rotateLogsByRecord},
                {"PUT_BAD_ACK", acknowledgeByRecord},
                {"RULES_LOAD", loadRulesByRecord}};

static long initBo(dbCommon *prec)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (isCommand(prec, commands[i].name)) {
            long status = ebpfMonGuardAdd(prec);

            prec->dpvt = (void *)&commands[i];
            return status ? status : DONE_NO_CONVERT;
        }
    }
    return refuseName(prec, "\"@LOST_RESET\", \"@IOC_GONE_ACK\", \"@LOG_ROTATE\", \"@PUT_BAD_ACK\" or \"@RULES_LOAD\"");
}

static long writeBo(boRecord *prec)
{
    const struct command *command = prec->dpvt;

    if (!ebpfMonGuardAccepts((dbCommon *)prec)) {
        prec->rval = prec->oraw;
        return EBPFMON_GUARD_REFUSED;
    }
    if (command && prec->val) /* 0: the field HIGH has set the button back */
        command->act(prec);
    return 0;
}

static long initLso(dbCommon *prec)
{
    return isCommand(prec, "CHAIN_HIST_ROOT") ? ebpfMonGuardAdd(prec) : refuseName(prec, "\"@CHAIN_HIST_ROOT\"");
}

static long writeLso(lsoRecord *prec)
{
    if (!ebpfMonGuardAccepts((dbCommon *)prec))
        return EBPFMON_GUARD_REFUSED;
    if (strlen(prec->val) >= EBPFMON_NAME_SIZE) {
        recGblSetSevrMsg(prec, WRITE_ALARM, INVALID_ALARM, "name has more than %d characters", EBPFMON_NAME_SIZE - 1);
        return -1;
    }
    ebpfMonPublishedSelectRoot(prec->val);
    return 0;
}

static long initFilterNumber(dbCommon *prec)
{
    long status = ebpfMonGuardAdd(prec);

    return status ? status : DONE_NO_CONVERT;
}

static long acceptFilterInput(dbCommon *prec, DBLINK *out)
{
    epicsUInt8 one = 1;

    return ebpfMonGuardAccepts(prec) ? dbPutLink(out, DBR_UCHAR, &one, 1) : EBPFMON_GUARD_REFUSED;
}

static long writeFilterAo(aoRecord *prec)
{
    long status = acceptFilterInput((dbCommon *)prec, &prec->out);

    if (status == EBPFMON_GUARD_REFUSED) {
        prec->oval = prec->pval = prec->val;
        prec->omod = FALSE;
        prec->rval = prec->oraw;
    }
    return status;
}

static long writeFilterLongout(longoutRecord *prec)
{
    return acceptFilterInput((dbCommon *)prec, &prec->out);
}

static long writeFilterMbbo(mbboRecord *prec)
{
    long status = acceptFilterInput((dbCommon *)prec, &prec->out);

    if (status == EBPFMON_GUARD_REFUSED)
        prec->rval = prec->oraw;
    return status;
}

static long writeFilterLso(lsoRecord *prec)
{
    return acceptFilterInput((dbCommon *)prec, &prec->out);
}

aodset devEbpfMonFilterAo = {{6, NULL, NULL, initFilterNumber, NULL}, writeFilterAo, NULL};
longoutdset devEbpfMonFilterLongout = {{5, NULL, NULL, ebpfMonGuardAdd, NULL}, writeFilterLongout};
mbbodset devEbpfMonFilterMbbo = {{5, NULL, NULL, initFilterNumber, NULL}, writeFilterMbbo};
lsodset devEbpfMonFilterLso = {{5, NULL, NULL, ebpfMonGuardAdd, NULL}, writeFilterLso};
epicsExportAddress(dset, devEbpfMonFilterAo);
epicsExportAddress(dset, devEbpfMonFilterLongout);
epicsExportAddress(dset, devEbpfMonFilterMbbo);
epicsExportAddress(dset, devEbpfMonFilterLso);
bodset devEbpfMonBo = {{5, NULL, NULL, initBo, NULL}, writeBo};
lsodset devEbpfMonLso = {{5, NULL, NULL, initLso, NULL}, writeLso};
epicsExportAddress(dset, devEbpfMonBo);
epicsExportAddress(dset, devEbpfMonLso);
