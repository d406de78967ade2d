/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aSub routine ebpfMonRulesSub:
 *   A name of a rules file, STRING or CHAR array; empty: the last file
 *   B 0 check it, 1 load it, 2 acknowledge the unexpected puts that the PVs have shown
 *   VALA the result, CHAR array    VALB number of rules    VALC unexpected puts that are open    VALD … since the start
 * If a file is refused, the old rules stay in force, and the record has the severity of BRSV.
 *
 * aSub routine ebpfMonPutSub, for logic in a database. The FLNK of PUT_LAST or PUT_BAD_LAST processes it:
 *   A 0 the newest put of a client that passed the filter, 1 the newest unexpected put
 *   VALA PV, VALB value, VALC writer: CHAR or STRING    VALD value as number    VALE origin    VALF 1: unexpected
 *   VALG the rule and the reason
 *
 * A number may have any numeric type. An output is not set if its type does not fit.
 */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <aSubRecord.h>
#include <dbAccess.h>
#include <dbConvertFast.h>
#include <dbFldTypes.h>
#include <epicsExport.h>
#include <registryFunction.h>

#include "model/ops.h"
#include "model/published.h"
#include "rules/rules.h"

#define TEXT_SIZE 512

static void setTextInput(aSubRecord *prec, int out, const char *text)
{
    epicsEnum16 type = (&prec->ftva)[out];
    char *to = (&prec->vala)[out];

    if (type == DBF_STRING) {
        ebpfMonTextCopy(to, MAX_STRING_SIZE, text);
    } else if (type == DBF_CHAR || type == DBF_UCHAR) {
        ebpfMonTextCopy(to, (&prec->nova)[out], text);
        (&prec->neva)[out] = (epicsUInt32)strlen(to) + 1;
    }
}

static void setNumber(aSubRecord *prec, int out, double value)
{
    epicsEnum16 type = (&prec->ftva)[out];

    if (type > DBF_STRING && type <= DBF_DOUBLE)
        dbFastPutConvertRoutine[DBR_DOUBLE][type](&value, (&prec->vala)[out], NULL);
}

static int getNumber(const aSubRecord *prec, int in)
{
    epicsEnum16 type = (&prec->fta)[in];
    double value;

    if (type > DBF_DOUBLE || dbFastGetConvertRoutine[type][DBR_DOUBLE]((&prec->a)[in], &value, NULL) != 0 ||
        !(value >= 0 && value < 100))
        return -1;
    return (int)value;
}

/* Reads the name of a file. 0, or -1: it is too long, or the input has another type. */
static int getName(const aSubRecord *prec, int in, char *name, size_t size)
{
    epicsEnum16 type = (&prec->fta)[in];
    size_t length;

    if (type != DBF_STRING && type != DBF_CHAR && type != DBF_UCHAR)
        return -1;
    length = strnlen((&prec->a)[in], type == DBF_STRING ? MAX_STRING_SIZE : (&prec->nea)[in]);
    if (length >= size)
        return -1;
    memcpy(name, (&prec->a)[in], length);
    name[length] = 0;
    return 0;
}

static int runCommand(const aSubRecord *prec, unsigned *rules, char *text, size_t size)
{
    char file[256];

    if (getName(prec, 0, file, sizeof(file))) {
        snprintf(text, size, "A must be a file name as STRING or CHAR, of up to %u characters",
                 (unsigned)sizeof(file) - 1);
        return -1;
    }
    switch (getNumber(prec, 1)) {
    case 0:
        if (!file[0]) {
            const ebpfMonPublished *published = ebpfMonPublishedLock();

            strcpy(file, published->rules.file);
            ebpfMonPublishedUnlock();
        }
        return ebpfMonRulesFileCheck(file, rules, text, size);
    case 1:
        return ebpfMonRulesFileLoad(ebpfMonOpsGet()->rules, file, text, size);
    case 2:
        snprintf(text, size, "acknowledged, %u unexpected puts open", ebpfMonPublishedAcknowledge(ebpfMonShownByPvs));
        return 0;
    default:
        snprintf(text, size, "B must be 0 (check), 1 (load) or 2 (acknowledge)");
        return -1;
    }
}

static long ebpfMonRulesSub(aSubRecord *prec)
{
    char text[TEXT_SIZE] = "";
    unsigned checked = 0, rules, open;
    uint64_t count;
    int status = runCommand(prec, &checked, text, sizeof(text));
    const ebpfMonPublished *published = ebpfMonPublishedLock();

    rules = checked ? checked : published->rules.count;
    open = (unsigned)published->unexpected.open;
    count = published->unexpected.count;
    ebpfMonPublishedUnlock();
    setTextInput(prec, 0, text);
    setNumber(prec, 1, rules);
    setNumber(prec, 2, open);
    setNumber(prec, 3, (double)count);
    return status;
}

static long ebpfMonPutSub(aSubRecord *prec)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonPut *newest = ebpfMonPublishedGetPutOf(published, ebpfMonPutByClient, 0);
    ebpfMonPut put;

    if (getNumber(prec, 0) == 1)
        newest = ebpfMonPublishedGetNewestUnexpected(published);
    if (newest)
        put = *newest;
    else
        memset(&put, 0, sizeof(put));
    ebpfMonPublishedUnlock();
    setTextInput(prec, 0, put.pv);
    setTextInput(prec, 1, put.val);
    setTextInput(prec, 2, put.who);
    setNumber(prec, 3, put.isNumber ? put.number : NAN);
    setTextInput(prec, 4, newest ? ebpfMonThroughName(put.through) : "");
    setNumber(prec, 5, put.unexpected);
    setTextInput(prec, 6, put.rule);
    return newest ? 0 : -1;
}

epicsRegisterFunction(ebpfMonRulesSub);
epicsRegisterFunction(ebpfMonPutSub);
