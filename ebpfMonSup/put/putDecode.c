/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USE_TYPED_RSET
#include <alarm.h>
#include <dbAccessDefs.h>
#include <dbConvertFast.h>
#include <dbFldTypes.h>
#include <dbStaticLib.h>
#include <epicsStdlib.h>

#include "common/clock.h"
#include "common/text.h"
#include "put/putWriter.h"
#include "put/putDecode.h"
#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"
#include "wire/caType.h"

static void formatLink(const struct ebpfMonPutEvent *ev, const char *target, char *buf, size_t size)
{
    static const char *const maximize[] = { "NMS", "MS", "MSI", "MSS" };
    const char *process = ev->linkMask & EBPFMON_PVL_CPP ? "CPP" : ev->linkMask & EBPFMON_PVL_CP ? "CP" :
                          ev->linkMask & EBPFMON_PVL_CA ? "CA" : ev->linkMask & EBPFMON_PVL_PP ? "PP" : "NPP";

    if (!target[0] || (ev->linkType != EBPFMON_LINK_PV && ev->linkType != EBPFMON_LINK_DB &&
                       ev->linkType != EBPFMON_LINK_CA) || ev->fieldType == ebpfMonDbfFwdlink)
        ebpfMonTextCopy(buf, size, target);
    else
        snprintf(buf, size, "%s %s %s", target, process, maximize[ev->linkMask & EBPFMON_PVL_MSMODE]);
}

int ebpfMonPutDecodeIsLink(const char *value, const char *link)
{
    size_t want, have;

    value += strspn(value, " \t"); /* dbParseLink (dbStaticLib.c) skips them */
    want = strcspn(value, " \t");
    have = strcspn(link, " \t");
    return want == have && strncmp(value, link, want) == 0;
}

void ebpfMonPutDecodeLinkResult(ebpfMonTarget *t, uint64_t linkAt, ebpfMonPut *put)
{
    ebpfMonLink link;
    char now[EBPFMON_TEXT_SIZE] = "";
    uint64_t name;

    if (!t->cat || ebpfMonLinkReadLate(t->eventThread.reads, t->pid, t->cat->base, linkAt, &link))
        return;
    if (link.type == EBPFMON_LINK_CONSTANT)
        name = link.value;
    else if (link.type == EBPFMON_LINK_PV || link.type == EBPFMON_LINK_DB || link.type == EBPFMON_LINK_CA)
        name = link.pvname;
    else
        return;
    if (name && ebpfMonLateReadsGetText(t->eventThread.reads, t->pid, name, now, sizeof(now)))
        now[0] = 0;
    if (ebpfMonLateReadsAreWanted(t->eventThread.reads))
        return;
    ebpfMonTextClean(now, sizeof(now)); /* as the value was */
    if (ebpfMonPutDecodeIsLink(put->val, now)) {
        put->result = ebpfMonPutOk;
    } else {
        put->result = ebpfMonPutFailed;
        put->status = S_dbLib_badLink;
    }
}

/* The name of a field that the catalogue does not have: an attribute of a record type, such as VERS. Its dbFldDes has
 * the name in the same place. */
static void readFieldName(ebpfMonTarget *t, uint64_t pfldDes, char *buf, size_t size)
{
    uint64_t name = 0;

    if (!pfldDes ||
        ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, pfldDes + offsetof(struct layoutFldDes, name), &name,
                                 sizeof(name)) ||
        !name || ebpfMonLateReadsGetText(t->eventThread.reads, t->pid, name, buf, size) || !buf[0])
        ebpfMonTextCopy(buf, size, "?");
    ebpfMonTextClean(buf, size);
}

/* Names from the catalogue. Before there is one, or for a record that is newer than it, from the record itself: its
 * name is the first member of dbCommon. */
static void setNames(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const ebpfMonField *f, ebpfMonPut *put)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, ev->precord) : -1;
    char record[EBPFMON_NAME_SIZE] = "?";
    char field[sizeof(((ebpfMonField *)0)->name)] = "?";
    const char *name = record;
    size_t base;

    if (f)
        memcpy(field, f->name, sizeof(field));
    else if (index >= 0)
        readFieldName(t, ev->pfldDes, field, sizeof(field));
    if (index >= 0)
        name = ebpfMonCatalogueName(t->cat, (uint32_t)index);
    else if (ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, ev->precord, record, sizeof(record)) == 0)
        record[sizeof(record) - 1] = 0;
    if (index < 0)
        ebpfMonTextClean(record, sizeof(record));
    if (f && strcmp(f->name, "VAL") == 0)
        ebpfMonTextSet(put->pv, sizeof(put->pv), name);
    else
        snprintf(put->pv, sizeof(put->pv), "%s.%.6s", name, field);

    /* The name as the client wrote it. The kernel part read it where a client has its channel. But perhaps no client
     * made the put: so the name is believed only if it names this record. */
    ebpfMonTextCopyBytes(put->channel, sizeof(put->channel), ev->channel, EBPFMON_CHANNEL_MAX - 1);
    base = ebpfMonPutGetRecordLength(put->channel);
    if (!put->channel[0] || base >= sizeof(record)) {
        put->channel[0] = 0;
        return;
    }
    memcpy(record, put->channel, base); /* "name", which may point here, is not needed any more */
    record[base] = 0;
    if ((t->cat && index >= 0 && ebpfMonCatalogueFind(t->cat, record) != index) ||
        strcmp(put->channel, put->pv) == 0)
        put->channel[0] = 0;
}

/* The types of the CA protocol (db_access.h: DBR_STRING, SHORT, FLOAT, ENUM, CHAR, LONG, DOUBLE). */
static const int caType[] = {
    ebpfMonDbfString, ebpfMonDbfShort, ebpfMonDbfFloat, ebpfMonDbfEnum, ebpfMonDbfUchar, ebpfMonDbfLong,
    ebpfMonDbfDouble,
};

int ebpfMonPutDecodeCaType(int dbrType)
{
    if (dbrType >= 0 && dbrType < (int)(sizeof(caType) / sizeof(caType[0])))
        return caType[dbrType];
    return ebpfMonDbfUshort; /* DBR_PUT_ACKT, DBR_PUT_ACKS: alarm acknowledgement */
}

/* Nonzero: the value is a single number by the type of the field. The index of an enum is not taken for a number. */
static int getNumber(const ebpfMonValue *v, int fieldType, double *number)
{
    return v->count == 1 && fieldType >= ebpfMonDbfChar && fieldType <= ebpfMonDbfDouble &&
           ebpfMonValueTextGetNumber(v, number);
}

/* What follows the 0 if the text may be an octal, hexadecimal or binary number for an integer; else 0. From 7.0.10 on
 * it is one (dbConvertBase is 0), if the IOC has no EPICS_DB_CONVERT_DECIMAL_ONLY; before, "0x10" is 0, "010" is 10. */
static char getPrefix(const char *text, int fieldType)
{
    text += strspn(text, " \t\n\v\f\r");
    text += *text == '-' || *text == '+';
    return fieldType < ebpfMonDbfFloat && text[0] == '0' && strchr("0123456789xXbB", text[1]) ? text[1] : 0;
}

/* Converts a text that a client sends to a number as dbPut does it (dbFastLinkConv.c): for an integer "1e3" is 1.
 * Nonzero: *number has it; else the IOC refuses it. */
static int convertDecimal(const char *text, int fieldType, double *number)
{
    epicsFloat64 space = 0; /* the largest of them */
    ebpfMonValue out = { .data = (const uint8_t *)&space, .count = 1, .type = fieldType,
                         .size = dbValueSize((short)fieldType), .len = (uint32_t)dbValueSize((short)fieldType) };

    return !dbFastPutConvertRoutine[DBR_STRING][fieldType](text, &space, NULL) &&
           ebpfMonValueTextGetNumber(&out, number);
}

static int convertByBase(const char *text, int fieldType, int base, double *number)
{
    char decimal[24 + MAX_STRING_SIZE], *units;
    long long value;

    if (epicsParseLLong(text, &value, base, &units))
        return 0;
    snprintf(decimal, sizeof(decimal), "%lld%s", value, strchr(".eE", *units) ? units : "");
    return convertDecimal(decimal, fieldType, number);
}

/* Only a decimal number is shown as a number, the one that was sent. */
static void convertText(const ebpfMonValue *v, int fieldType, ebpfMonPut *put)
{
    char text[MAX_STRING_SIZE], *end, prefix;

    if (v->type != ebpfMonDbfString || v->count != 1 || fieldType < ebpfMonDbfChar || fieldType > ebpfMonDbfDouble)
        return;
    snprintf(text, sizeof(text), "%.*s", (int)v->len, (const char *)v->data);
    prefix = getPrefix(text, fieldType);
    if (prefix) {
        put->isConverted = convertByBase(text, fieldType, 10, &put->converted);
        put->isWrapped = convertByBase(text, fieldType, 0, &put->wrapped);
        if (prefix == 'b' || prefix == 'B') { /* the C library of the IOC decides (2.38: C23) */
            put->isWrapped = 1;
            put->wrapped = NAN;
        }
        return;
    }
    put->isConverted = convertDecimal(text, fieldType, &put->converted);
    put->number = strtod(text, &end);
    put->isNumber = put->isConverted && end != text && !*end && !strpbrk(text, "xX");
}

/* A number for which the type of the field has no room becomes another one, as dbPut converts it: -1 is 4294967295 in
 * an unsigned field. */
static void convertNumber(const ebpfMonValue *v, int fieldType, ebpfMonPut *put)
{
    ebpfMonValue out = { .type = fieldType, .count = 1, .size = dbValueSize((short)fieldType) };
    int size = dbValueSize((short)v->type);
    epicsInt64 from = 0, space = 0; /* the largest of them */
    double stored = 0;

    if (fieldType >= ebpfMonDbfFloat)
        return;
    for (int i = 0; i < size; i++)
        ((uint8_t *)&from)[i] = v->data[v->network ? size - 1 - i : i];
    if (dbFastPutConvertRoutine[v->type][fieldType](&from, &space, NULL))
        return;
    out.data = (const uint8_t *)&space;
    out.len = (uint32_t)out.size;
    put->isWrapped = ebpfMonValueTextGetNumber(&out, &stored) && stored != trunc(put->number);
    put->wrapped = stored;
}

/* A text that is sent as an array of characters ("REC.DESC$") is shown as text: "" is not an array of zeros, and "7"
 * not a number. Nonzero: it is such a text, all of it is there, and *v is a string now. */
static int takeAsString(const ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const ebpfMonField *f,
                        ebpfMonValue *v)
{
    const char *rtype = f && t->cat ? t->cat->rtype[f->rtype].name : "";
    const uint8_t *end;

    if (!f || (v->type != ebpfMonDbfChar && v->type != ebpfMonDbfUchar) ||
        (ev->fieldType != ebpfMonDbfChar && ev->putKind != EBPFMON_PUT_LINK))
        return 0;
    if (f->type != ebpfMonDbfString && (f->type < ebpfMonDbfInlink || f->type > ebpfMonDbfFwdlink) &&
        (f->type != ebpfMonDbfNoaccess ||
         (strcmp(rtype, "lsi") != 0 && strcmp(rtype, "lso") != 0 && strcmp(rtype, "printf") != 0)))
        return 0;
    end = memchr(v->data, 0, v->len);
    if (!end && v->count > (long)v->len)
        return 0;
    v->size = (int)(end ? (uint32_t)(end - v->data) + 1 : v->len);
    v->type = ebpfMonDbfString;
    v->count = 1;
    return 1;
}

static void setOldValue(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const ebpfMonField *f, const uint8_t *data,
                     ebpfMonPut *put)
{
    ebpfMonValue old = {
        .data = data, .len = ev->oldLen, .type = ev->fieldType, .size = ev->fieldSize,
        .count = ev->oldCount >= 0 ? ev->oldCount : ev->nElements,
    };
    int isString;

    put->oldCount = -1;
    if (ev->putKind != EBPFMON_PUT_LINK && !ev->oldLen && old.count > 0)
        return; /* it could not be read */
    put->hasOld = 1;
    put->oldCount = (long)old.count;
    if (ev->putKind == EBPFMON_PUT_LINK) {
        char target[EBPFMON_VAL_MAX + 1];

        put->oldCount = 1;
        snprintf(target, sizeof(target), "%.*s", (int)old.len, (const char *)old.data);
        formatLink(ev, target, put->old, sizeof(put->old));
        return;
    }
    isString = takeAsString(t, ev, f, &old);
    if (isString)
        put->oldCount = old.size;
    ebpfMonValueTextFormat(t, f, ev->precord, &old, put->old, sizeof(put->old));
    put->oldIsText = ebpfMonValueTextIsText(&old);
    put->oldIsNumber = !isString && getNumber(&old, ev->fieldType, &put->oldNumber);
}

/* Nonzero: texts for an array of numbers, as caput sends them. Only then a blank ends an element. */
static int areNumbers(const ebpfMonValue *v, int fieldType)
{
    if (v->type != ebpfMonDbfString || v->count < 2 || fieldType < ebpfMonDbfChar || fieldType > ebpfMonDbfDouble)
        return 0;
    for (uint32_t at = 0, left = v->len, size; left; at += size, left -= size) {
        size = left < MAX_STRING_SIZE ? left : MAX_STRING_SIZE;
        if (memchr(v->data + at, ' ', strnlen((const char *)v->data + at, size)))
            return 0;
    }
    return 1;
}

static void setNewValue(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const ebpfMonField *f, const uint8_t *data,
                        ebpfMonPut *put)
{
    /* The CA server converts a value in place before it calls dbPut, but not one that it refuses before
     * (camessage.c). */
    ebpfMonValue new = {
        .data = data, .len = ev->newLen, .size = 40, .count = ev->nRequest, .network = ev->network,
        .type = ev->network || ev->dbrType > ebpfMonDbfEnum ? ebpfMonPutDecodeCaType(ev->dbrType) : ev->dbrType,
    };
    int isString = takeAsString(t, ev, f, &new);

    put->count = (long)ev->nRequest;
    ebpfMonValueTextFormat(t, f, ev->precord, &new, put->val, sizeof(put->val));
    put->isText = ebpfMonValueTextIsText(&new) && !areNumbers(&new, ev->fieldType);
    put->isNumber = !isString && getNumber(&new, ev->fieldType, &put->number);
    if (put->isNumber)
        convertNumber(&new, ev->fieldType, put);
    else if (!isString)
        convertText(&new, ev->fieldType, put);
}

/* Base refuses it for link fields (dbPutFieldLink, dbAccess.c). */
int ebpfMonPutDecodeIsAcknowledge(const struct ebpfMonPutEvent *ev)
{
    if (ev->network)
        return ebpfMonCaTypeIsAcknowledge(ev->dbrType);
    return ev->putKind != EBPFMON_PUT_LINK && (ev->dbrType == DBR_PUT_ACKT || ev->dbrType == DBR_PUT_ACKS);
}

static void setField(char *name, size_t size, const char *field)
{
    size_t record = ebpfMonPutGetRecordLength(name), most = size - 1 - strlen(field);

    ebpfMonTextSet(name + (record < most ? record : most), strlen(field) + 1, field);
}

void ebpfMonPutDecodeSetAcknowledge(ebpfMonPut *put, int isSeverity, const ebpfMonValue *sent)
{
    const char *field = isSeverity ? ".ACKS" : ".ACKT", *what = "?";
    double value;

    setField(put->pv, sizeof(put->pv), field);
    if (put->channel[0])
        setField(put->channel, sizeof(put->channel), field);
    if (strcmp(put->channel, put->pv) == 0)
        put->channel[0] = 0;
    if (ebpfMonValueTextGetNumber(sent, &value)) {
        if (!isSeverity)
            what = value != 0 ? "YES" : "NO";
        else if (value < ALARM_NSEV)
            what = epicsAlarmSeverityStrings[(int)value];
    }
    snprintf(put->val, sizeof(put->val), "acknowledge %s%s", isSeverity ? "" : "transient ", what);
    put->count = 1;
    put->oldCount = -1;
}

/* "ev" acknowledges an alarm. */
static void decodeAcknowledge(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const uint8_t *data, ebpfMonPut *put)
{
    ebpfMonValue sent = {
        .data = data, .len = ev->newLen, .type = ebpfMonDbfUshort, .size = 2, .count = 1, .network = ev->network,
    };

    setNames(t, ev, NULL, put);
    ebpfMonPutDecodeSetAcknowledge(
        put, ev->dbrType == (ev->network ? EBPFMON_CA_PUT_ACKS : DBR_PUT_ACKS), &sent);
}

int ebpfMonPutDecodeEvent(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, size_t size, ebpfMonPut *put,
                          ebpfMonLinkPut *change)
{
    const uint8_t *data = (const uint8_t *)(ev + 1);
    const ebpfMonField *f;

    if (size < sizeof(*ev) || ev->oldLen > EBPFMON_VAL_MAX || ev->newLen > EBPFMON_VAL_MAX ||
        size < sizeof(*ev) + ev->oldLen + ev->newLen)
        return 0;
    memset(put, 0, sizeof(*put));
    memset(change, 0, sizeof(*change));
    put->at = ev->head.ktime;
    put->time = ebpfMonClockWallTime(put->at);
    ebpfMonTextSet(put->ioc, sizeof(put->ioc), t->name);
    put->seen = EBPFMON_SEEN_INSIDE;
    put->result = ev->putKind == EBPFMON_PUT_DENIED ? ebpfMonPutDenied :
                  ev->putKind == EBPFMON_PUT_DISABLED ? ebpfMonPutFailed : ebpfMonPutUnknown;
    if (ev->putKind == EBPFMON_PUT_DISABLED)
        put->status = S_db_putDisabled;
    if (ebpfMonPutDecodeIsAcknowledge(ev)) {
        decodeAcknowledge(t, ev, data + ev->oldLen, put);
        return 1;
    }
    f = t->cat ? ebpfMonCatalogueField(t->cat, ev->pfldDes) : NULL;
    setNames(t, ev, f, put);
    setOldValue(t, ev, f, data, put);
    setNewValue(t, ev, f, data + ev->oldLen, put);
    ebpfMonLinkPutDecode(t, ev, f, put, change);
    return 1;
}

void ebpfMonPutDecodeResult(ebpfMonTarget *t, const ebpfMonPutAddress *at, const struct ebpfMonResultEvent *ev,
                            ebpfMonPut *put)
{
    const ebpfMonField *f = t->cat ? ebpfMonCatalogueField(t->cat, at->pfldDes) : NULL;
    ebpfMonValue v = {
        .data = ev->after, .len = ev->afterLen, .type = at->fieldType, .size = at->fieldSize, .count = 1,
    };
    double number;

    if (at->isAcknowledge || !ev->afterLen || ev->afterLen > EBPFMON_AFTER_MAX || put->count != 1)
        return;
    if (put->isNumber && ebpfMonValueTextGetNumber(&v, &number) &&
        (number == put->number || (number != number && put->number != put->number) ||
         (at->fieldType == ebpfMonDbfFloat && (float)number == (float)put->number)))
        return;
    ebpfMonValueTextFormat(t, f, at->precord, &v, put->after, sizeof(put->after));
    if (strcmp(put->after, put->val) == 0)
        put->after[0] = 0;
}
