/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operator sets besides the filter, DTYP "ebpfMon": bo "@LOST_RESET" and "@LOG_ROTATE", lso "@CHAIN_SEL". */
/* Type-safe support tables, as Base offers them: to be asked for before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <string.h>

#include <alarm.h>
#include <boRecord.h>
#include <dbAccess.h>
#include <devSup.h>
#include <epicsExport.h>
#include <errlog.h>
#include <link.h>
#include <lsoRecord.h>
#include <recGbl.h>

#include "model/board.h"
#include "model/control.h"
#include "model/logControl.h"

#define DONE_NO_CONVERT 2 /* bo: do not set VAL from RVAL */

static long initCommand(dbCommon *prec, const char *name)
{
    DBLINK *link = dbGetDevLink(prec);

    if (link && link->type == INST_IO && strcmp(link->value.instio.string, name) == 0)
        return 0;
    errlogSevPrintf(errlogMajor, "%s: OUT must be \"@%s\"\n", prec->name, name);
    return S_dev_badOutType;
}

static void lostReset(void)
{
    ebpfMonControl()->resetLost();
    ebpfMonLogControl()->resetLost();
}

static void logRotate(void)
{
    ebpfMonLogControl()->rotate();
}

typedef struct {
    const char *name;
    void (*run)(void);
} command;

static const command commands[] = {{"LOST_RESET", lostReset}, {"LOG_ROTATE", logRotate}};

static long initBo(dbCommon *prec)
{
    DBLINK *link = dbGetDevLink(prec);
    size_t i;

    for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (link && link->type == INST_IO && strcmp(link->value.instio.string, commands[i].name) == 0) {
            prec->dpvt = (void *)&commands[i];
            return DONE_NO_CONVERT;
        }
    }
    errlogSevPrintf(errlogMajor, "%s: OUT must be \"@LOST_RESET\" or \"@LOG_ROTATE\"\n", prec->name);
    return S_dev_badOutType;
}

static long writeBo(boRecord *prec)
{
    const command *c = prec->dpvt;

    if (prec->val && c) /* 0 is written by HIGH, when the button comes up again */
        c->run();
    return 0;
}

static long initLso(dbCommon *prec)
{
    return initCommand(prec, "CHAIN_SEL");
}

static long writeLso(lsoRecord *prec)
{
    if (strlen(prec->val) >= EBPFMON_NAME_SIZE) {
        recGblSetSevrMsg(prec, WRITE_ALARM, INVALID_ALARM, "record name has more than %d characters",
                         EBPFMON_NAME_SIZE - 1);
        return -1;
    }
    ebpfMonBoardHistSelect(prec->val);
    return 0;
}

bodset devEbpfMonBo = {{5, NULL, NULL, initBo, NULL}, writeBo};
lsodset devEbpfMonLso = {{5, NULL, NULL, initLso, NULL}, writeLso};
epicsExportAddress(dset, devEbpfMonBo);
epicsExportAddress(dset, devEbpfMonLso);
