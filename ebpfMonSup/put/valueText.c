/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "host/foreign.h"
#include "ioc/baseLayout.h"
#include "model/put.h"
#include "put/valueText.h"

/* --- writers --- */

/* Stands before a client who is not certain (isUnsure of ebpfMonPut): what is cut of a long text is its end. */
#define EBPFMON_PERHAPS "perhaps "

void ebpfMonWriterTextFormatCause(const char *user, const char *host, int isUnsure, char *buf, size_t size)
{
    snprintf(buf, size, EBPFMON_PUT_BY "%s%.39s@%.40s", isUnsure ? EBPFMON_PERHAPS : "", user, host);
}

/* A client is called as it claims, because that is how operators know it. What the kernel knows of a client on this
 * host stands beside the claim. */
static void makeWho(ebpfMonPut *put)
{
    char local[160] = "", who[2 * EBPFMON_WHO_SIZE];

    if (put->peer[0] && ebpfMonPutIsAnonymous(put)) {
        if (put->gatewayClients)
            snprintf(who, sizeof(who), "one of %u clients", put->gatewayClients);
        else
            ebpfMonTextSet(who, sizeof(who), "a client not known");
    } else if (put->peer[0]) {
        if (put->peerPid)
            snprintf(local, sizeof(local), " %s[%u]%s%s", put->command, put->peerPid,
                     put->container[0] ? " in " : "", put->container);
        snprintf(who, sizeof(who), "%s%s@%s%s", put->isUnsure ? EBPFMON_PERHAPS : "", put->user[0] ? put->user : "?",
                 put->host, local);
    } else if (put->through == ebpfMonByShell || put->through == ebpfMonByInit) {
        ebpfMonTextSet(who, sizeof(who), ebpfMonThroughName(put->through));
    } else {
        snprintf(who, sizeof(who), "thread %s", put->thread);
    }
    if (put->gateway[0])
        snprintf(who + strlen(who), sizeof(who) - strlen(who), " through gateway %s", put->gateway);
    ebpfMonTextCopy(put->who, sizeof(put->who), who);
}

static void makeOrigin(ebpfMonPut *put)
{
    char reason[400] = "";
    int n = 0;

    if (put->authority[0])
        n = snprintf(reason, sizeof(reason), ", issuer %s", put->authority);
    if (put->link[0])
        n += snprintf(reason + n, sizeof(reason) - (size_t)n, ", %s %s%s%s",
                      put->through == ebpfMonByPva ? "PVA link" : ebpfMonThroughName(put->through), put->link,
                      put->linkIoc[0] ? " of " : "", put->linkIoc);
    if (put->published[0] && n < (int)sizeof(reason))
        n += snprintf(reason + n, sizeof(reason) - (size_t)n, ", to %s", put->published);
    if (put->group[0] && n < (int)sizeof(reason))
        n += snprintf(reason + n, sizeof(reason) - (size_t)n, ", group %s", put->group);
    if (put->root[0] && n < (int)sizeof(reason))
        n += snprintf(reason + n, sizeof(reason) - (size_t)n, ", chain of %s", put->root);
    if (put->cause[0] && n < (int)sizeof(reason))
        snprintf(reason + n, sizeof(reason) - (size_t)n, ", %s", put->cause);
    if (put->peer[0] && !ebpfMonPutIsInner(put))
        snprintf(put->origin, sizeof(put->origin), "%s %s%s%s%s%s", put->through == ebpfMonByPva ? "PVA" : "CA",
                 put->isUnsure && !ebpfMonPutIsAnonymous(put) ? EBPFMON_PERHAPS : "", put->peer,
                 put->realUser[0] ? " uid " : "", put->realUser,
                 reason);
    else if (reason[0])
        ebpfMonTextSet(put->origin, sizeof(put->origin), reason + 2);
    else
        ebpfMonTextSet(put->origin, sizeof(put->origin), "in the IOC");
}

void ebpfMonWriterTextComplete(ebpfMonPut *put)
{
    ebpfMonPutClean(put);
    makeWho(put);
    makeOrigin(put);
}

/* --- values --- */

#define FIRST_ELEMENTS 8 /* of an array */
#define CHOICE_SIZE    256
#define CHOICE_SECONDS 0.25

/* The fields that have the texts of an enum's states, by state (mbbiRecord.dbd, mbboRecord.dbd); those of bi and bo are
 * ZNAM and ONAM. */
static const char *const stateField[16] = {
    "ZRST", "ONST", "TWST", "THST", "FRST", "FVST", "SXST", "SVST",
    "EIST", "NIST", "TEST", "ELST", "TVST", "TTST", "FTST", "FFST",
};

/* One choice of a menu in the memory of the IOC: three reads in one job, because to hand one over costs more than
 * it. */
typedef struct {
    uint64_t pid;
    uint64_t menu;
    uint32_t isDevice;  /* a struct layoutDeviceMenu */
    uint32_t index;
} choiceKey;

typedef struct {
    choiceKey key;
    char      text[CHOICE_SIZE];
} choiceJob;

static void runChoiceJob(void *data)
{
    choiceJob *j = data;
    pid_t pid = (pid_t)j->key.pid;
    struct layoutMenu menu;
    struct layoutDeviceMenu device;
    uint64_t choices, at;
    int32_t count;

    j->text[0] = 0;
    if (j->key.isDevice ? ebpfMonMemReadNow(pid, j->key.menu, &device, sizeof(device)) :
        ebpfMonMemReadNow(pid, j->key.menu, &menu, sizeof(menu)))
        return;
    choices = j->key.isDevice ? device.papChoice : menu.papChoiceValue;
    count = j->key.isDevice ? device.nChoice : menu.nChoice;
    if (count < 0 || count > 65536 || j->key.index >= (unsigned)count ||
        ebpfMonMemReadNow(pid, choices + 8u * j->key.index, &at, sizeof(at)))
        return;
    ebpfMonMemTextNow(pid, at, j->text, sizeof(j->text));
}

/* An ebpfMonLateReadFn. 0, or -1: there is none. */
static int readChoice(const void *key, void *buf, size_t size)
{
    static const ebpfMonForeignJob job = { runChoiceJob, free };
    choiceJob *j = malloc(sizeof(*j));

    if (!j)
        return -1;
    j->key = *(const choiceKey *)key;
    if (ebpfMonForeignRun((pid_t)j->key.pid, CHOICE_SECONDS, &job, j))
        return -1;
    ebpfMonTextCopy(buf, size, j->text);
    free(j);
    return *(const char *)buf ? 0 : -1;
}

static int findChoice(const ebpfMonTarget *t, const ebpfMonField *f, unsigned index, char *buf, size_t size)
{
    choiceKey key = {
        .pid = (uint64_t)t->pid, .menu = f->ftPvt, .isDevice = f->type == ebpfMonDbfDevice, .index = index};
    char text[CHOICE_SIZE];

    if (ebpfMonLateReadsGet(t->eventThread.reads, readChoice, &key, sizeof(key), text, sizeof(text)))
        return -1;
    ebpfMonTextCopy(buf, size, text);
    return 0;
}

static int findStateText(ebpfMonTarget *t, const ebpfMonField *f, uint64_t precord, unsigned index, char *buf,
                         size_t size)
{
    if ((f->type == ebpfMonDbfMenu || f->type == ebpfMonDbfDevice) && f->ftPvt)
        return findChoice(t, f, index, buf, size);
    if (f->type == ebpfMonDbfEnum && index < 16) {
        const ebpfMonField *s = NULL;
        char text[27];

        if (index < 2)
            s = ebpfMonCatalogueFieldNamed(t->cat, f->rtype, index ? "ONAM" : "ZNAM");
        if (!s)
            s = ebpfMonCatalogueFieldNamed(t->cat, f->rtype, stateField[index]);
        if (!s || ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, precord + s->offset, text, sizeof(text) - 1))
            return -1;
        text[sizeof(text) - 1] = 0;
        if (!text[0])
            return -1;
        ebpfMonTextCopy(buf, size, text);
        return 0;
    }
    return -1;
}

static unsigned getElementSize(const ebpfMonValue *v)
{
    switch (v->type) {
    case ebpfMonDbfChar: case ebpfMonDbfUchar: return 1;
    case ebpfMonDbfShort: case ebpfMonDbfUshort:
    case ebpfMonDbfEnum: case ebpfMonDbfMenu: case ebpfMonDbfDevice: return 2;
    case ebpfMonDbfLong: case ebpfMonDbfUlong: case ebpfMonDbfFloat: return 4;
    case ebpfMonDbfInt64: case ebpfMonDbfUint64: case ebpfMonDbfDouble: return 8;
    case ebpfMonDbfString: return v->size > 0 ? (unsigned)v->size : 40;
    default: return 0;
    }
}

/* Nonzero: it is a whole number, and was written. It gets the same text as by "%g" with enough digits, in a third of
 * the time. "max": from here on "%g" writes an exponent. */
static int formatWhole(double d, double max, char *buf, size_t size)
{
    if (!(fabs(d) < max) || trunc(d) < d || trunc(d) > d || (signbit(d) && d >= 0))
        return 0;
    snprintf(buf, size, "%lld", (long long)d);
    return 1;
}

/* The shortest text from which the same number is read again. Nearly always that is the first one tried. */
static void formatFloating(double d, int isFloat, char *buf, size_t size)
{
    if (isnan(d)) {
        snprintf(buf, size, "NaN");
        return;
    }
    if (formatWhole(d, isFloat ? 1e6 : 1e15, buf, size))
        return;
    for (int p = isFloat ? 6 : 15; p <= 17; p++) {
        snprintf(buf, size, "%.*g", p, d);
        if (isFloat ? strtof(buf, NULL) == (float)d : strtod(buf, NULL) == d)
            return;
    }
}

typedef union {
    uint8_t b[8];
    int8_t i8; uint8_t u8; int16_t i16; uint16_t u16; int32_t i32; uint32_t u32;
    int64_t i64; uint64_t u64; float f; double d;
} scalar;

static scalar getScalar(const ebpfMonValue *v, const uint8_t *at)
{
    scalar u = { .u64 = 0 };
    unsigned n = getElementSize(v);

    for (unsigned i = 0; i < n && i < 8; i++)
        u.b[i] = at[v->network ? n - 1 - i : i];
    return u;
}

int ebpfMonValueTextGetNumber(const ebpfMonValue *v, double *number)
{
    unsigned each = getElementSize(v);
    scalar u;

    if (!each || v->type == ebpfMonDbfString || v->count != 1 || v->len < each)
        return 0;
    u = getScalar(v, v->data);
    switch (v->type) {
    case ebpfMonDbfChar: *number = u.i8; break;
    case ebpfMonDbfUchar: *number = u.u8; break;
    case ebpfMonDbfShort: *number = u.i16; break;
    case ebpfMonDbfLong: *number = u.i32; break;
    case ebpfMonDbfUlong: *number = u.u32; break;
    case ebpfMonDbfInt64: *number = (double)u.i64; break;
    case ebpfMonDbfUint64: *number = (double)u.u64; break;
    case ebpfMonDbfFloat: *number = u.f; break;
    case ebpfMonDbfDouble: *number = u.d; break;
    default: *number = u.u16; break;
    }
    return 1;
}

static void formatElement(const ebpfMonValue *v, const uint8_t *at, char *buf, size_t size)
{
    scalar u = getScalar(v, at);

    switch (v->type) {
    case ebpfMonDbfChar: snprintf(buf, size, "%d", u.i8); break;
    case ebpfMonDbfUchar: snprintf(buf, size, "%u", u.u8); break;
    case ebpfMonDbfShort: snprintf(buf, size, "%d", u.i16); break;
    case ebpfMonDbfUshort: case ebpfMonDbfEnum: case ebpfMonDbfMenu: case ebpfMonDbfDevice:
        snprintf(buf, size, "%u", u.u16); break;
    case ebpfMonDbfLong: snprintf(buf, size, "%" PRId32, u.i32); break;
    case ebpfMonDbfUlong: snprintf(buf, size, "%" PRIu32, u.u32); break;
    case ebpfMonDbfInt64: snprintf(buf, size, "%" PRId64, u.i64); break;
    case ebpfMonDbfUint64: snprintf(buf, size, "%" PRIu64, u.u64); break;
    case ebpfMonDbfFloat: formatFloating(u.f, 1, buf, size); break;
    case ebpfMonDbfDouble: formatFloating(u.d, 0, buf, size); break;
    default: buf[0] = 0;
    }
}

/* Long strings are sent as char arrays: printable characters up to a terminator or the end. */
static int hasTextOnly(const uint8_t *s, uint32_t len)
{
    uint32_t i = 0;

    for (; i < len && s[i]; i++)
        if (s[i] < ' ' && s[i] != '\t' && s[i] != '\n' && s[i] != '\r')
            return 0;
    return i > 0;
}

static int isLongString(const ebpfMonValue *v)
{
    return (v->type == ebpfMonDbfChar || v->type == ebpfMonDbfUchar) && v->count > 1 && hasTextOnly(v->data, v->len);
}

int ebpfMonValueTextIsText(const ebpfMonValue *v)
{
    return v->type == ebpfMonDbfString || isLongString(v);
}

/* The number of a state, of whatever integer type it was sent. -1: it is none. */
static long getStateIndex(const ebpfMonValue *v)
{
    char text[32];
    long index;

    if (v->type == ebpfMonDbfString || getElementSize(v) > v->len || v->count != 1)
        return -1;
    formatElement(v, v->data, text, sizeof(text));
    if (sscanf(text, "%ld", &index) != 1 || strpbrk(text, ".enN") || index < 0 || index > 65535)
        return -1;
    return index;
}

/* One element, or "?" for one that could not be read. */
static void formatScalar(const ebpfMonValue *v, unsigned each, char *buf, size_t size)
{
    if (v->len >= each)
        formatElement(v, v->data, buf, size);
    else
        snprintf(buf, size, "?");
}

static void formatLongString(const ebpfMonValue *v, char *buf, size_t size)
{
    char text[EBPFMON_TEXT_SIZE];

    ebpfMonTextCopyBytes(text, sizeof(text), (const char *)v->data, v->len);
    if (v->count > (long)v->len && strlen(text) + 4 < sizeof(text) && !memchr(v->data, 0, v->len))
        strcat(text, "...");
    ebpfMonTextCopy(buf, size, text);
}

/* "[1000] 1 2 3 ...": the number of elements, then the first of them. */
static void formatArray(const ebpfMonValue *v, unsigned each, char *buf, size_t size)
{
    uint32_t have = v->len / each, shown = 0;
    char one[EBPFMON_TEXT_SIZE];
    size_t n = (size_t)snprintf(buf, size, "[%ld]", v->count);

    if (n >= size)
        return;
    for (uint32_t i = 0; i < have && i < FIRST_ELEMENTS && (long)i < v->count; i++) {
        if (v->type == ebpfMonDbfString)
            ebpfMonTextCopyBytes(one, sizeof(one), (const char *)v->data + i * each, each);
        else
            formatElement(v, v->data + i * each, one, sizeof(one));
        if (n + strlen(one) + sizeof(" ...") >= size)
            break; /* many escapes */
        n += (size_t)snprintf(buf + n, size - n, " %s", one);
        shown++;
    }
    if (v->count > (long)shown)
        snprintf(buf + n, size - n, " ...");
}

void ebpfMonValueTextFormat(ebpfMonTarget *t, const ebpfMonField *field, uint64_t precord, const ebpfMonValue *v,
                            char *buf, size_t size)
{
    unsigned each = getElementSize(v);

    buf[0] = 0;
    if (!each) {
        snprintf(buf, size, "?");
        return;
    }
    if (t && field && field->type >= ebpfMonDbfEnum && field->type <= ebpfMonDbfDevice) {
        long index = getStateIndex(v);

        if (index >= 0 && findStateText(t, field, precord, (unsigned)index, buf, size) == 0)
            return;
    }
    if (v->type == ebpfMonDbfString && v->count == 1) {
        ebpfMonTextCopyBytes(buf, size, (const char *)v->data, v->len < each ? v->len : each);
    } else if (isLongString(v)) {
        formatLongString(v, buf, size);
    } else if (v->count == 1) {
        formatScalar(v, each, buf, size);
    } else {
        formatArray(v, each, buf, size);
    }
}
