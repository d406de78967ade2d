/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alarm.h>
#include <epicsThread.h>

#include "common/text.h"
#include "host/procStat.h"
#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"
#include "ioc/recordLinks.h"
#include "model/published.h"
#include "model/put.h"
#include "module/modules.h"
#include "subscriptions/whyRecord.h"
#include "subscriptions/whyWrite.h"
#include "shared/iocInventory.h"

#define AGAIN_SECONDS 0.3  /* between the two readings of the record */
#define LATE_PERIODS  3.0  /* a periodic record that has not processed for so many periods, and … */
#define LATE_SECONDS  2.0
#define FAR_LATE      1.5  /* a scan thread of which the mean period is so many nominal ones, … */
#define BUSY_PERCENT  80   /* … and that is so busy, has too much to do; else it was stopped, or hung */
#define OLD_SECONDS   10.0 /* a Passive record that has not processed for so long, and its source has */
#define FUTURE_SECONDS 60.0 /* a time stamp that is so far ahead; by less: TAI, which some timing systems have */
#define DEPTH_MAX     3    /* sources of sources */
#define SOURCES_MAX   60   /* that are looked at for one answer */
#define PROCESSORS_MAX 8   /* records that process one, that are looked at */

/* A record as it was at one moment. */
typedef struct {
    int      isRead;
    epicsTimeStamp time;
    int      pact, udf, sevr, stat, tse;
    double   disa, disv, val;
    char     scan[40];
} recordState;

/* One answer. */
typedef struct {
    ebpfMonTargets *targets;
    epicsTimeStamp now;
    int      isStill;      /* the record that is asked for did not process between the two readings … */
    int      isInvalid;    /* … and its alarm is INVALID */
    unsigned sources;
} look;

/* --- its fields -------------------------------------------------------------------------------------------------- */

static int readRaw(const ebpfMonWhyPlace *p, uint16_t offset, void *to, size_t size)
{
    return p->mem ? ebpfMonMemRead(p->mem, p->cat->rec[p->record].addr + offset, to, size) : -1;
}

/* VAL as a number, also of bi, mbbo and their kin; NaN: it is none. */
static double readValue(const ebpfMonWhyPlace *p)
{
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(p->cat, p->cat->rec[p->record].rtype, "VAL");
    uint16_t number;

    if (f && f->type == ebpfMonDbfEnum)
        return readRaw(p, f->offset, &number, sizeof(number)) ? NAN : number;
    return ebpfMonWhyReadNumber(p, "VAL");
}

static void readState(const ebpfMonWhyPlace *p, recordState *s)
{
    const ebpfMonCommon *c = &p->cat->common;
    uint16_t sevr, stat;
    uint8_t pact;
    int16_t tse;

    *s = (recordState){ .isRead = 0 };
    if (p->mem)
        ebpfMonMemFlush(p->mem);
    if (readRaw(p, c->time, &s->time, sizeof(s->time)) || readRaw(p, c->pact, &pact, sizeof(pact)) ||
        readRaw(p, c->sevr, &sevr, sizeof(sevr)) || readRaw(p, c->stat, &stat, sizeof(stat)) ||
        readRaw(p, c->tse, &tse, sizeof(tse)))
        return;
    s->isRead = 1;
    s->pact = pact;
    s->sevr = sevr;
    s->stat = stat;
    s->tse = tse;
    s->disa = ebpfMonWhyReadNumber(p, "DISA");
    s->disv = ebpfMonWhyReadNumber(p, "DISV");
    s->udf = ebpfMonWhyReadNumber(p, "UDF") > 0;
    s->val = readValue(p);
    ebpfMonWhyReadText(p, "SCAN", s->scan, sizeof(s->scan));
}

static int isSameTime(const recordState *a, const recordState *b)
{
    return memcmp(&a->time, &b->time, sizeof(a->time)) == 0;
}

/* Seconds since the time stamp; less than 0: it has none, or does not show each processing (ioc/catalogue.h). */
static double findAge(const ebpfMonWhyPlace *p, const recordState *s, epicsTimeStamp now)
{
    const ebpfMonRecord *r = &p->cat->rec[p->record];
    int stamps = p->cat->rtype[r->rtype].stamps;

    if (!s->time.secPastEpoch || s->tse || (r->flags & (EBPFMON_REC_TSE | EBPFMON_REC_UNDEFINED)) ||
        (stamps != EBPFMON_STAMPS_BASE && stamps != EBPFMON_STAMPS_SEEN))
        return -1;
    return epicsTimeDiffInSeconds(&now, &s->time);
}

/* --- what others have published ---------------------------------------------------------------------------------- */

/* A cell of a table of another module, under the lock of the published values. NULL: there is no such module or row. */
static const void *getCell(const ebpfMonPublished *published, const char *name, unsigned index)
{
    const ebpfMonPv *pv = ebpfMonModulesFindPv(name, 0);
    const void *row = pv ? pv->row(published, index) : NULL;

    return row ? (const char *)row + pv->offset : NULL;
}

/* "REC (calcout, ODLY 1000, active for at least 12 s)" in a list of such, of this record. NULL: it is not in it. */
static const char *findInList(const char *list, const char *record)
{
    size_t n = strlen(record);

    for (const char *at = strstr(list, record); at; at = strstr(at + 1, record))
        if ((at == list || at[-1] == ' ') && strncmp(at + n, " (", 2) == 0)
            return at + n + 2;
    return NULL;
}

/* What the module waits says of an active record, without its name. 0, or -1: nothing. */
static int findActive(const ebpfMonWhyPlace *p, char *text, size_t size)
{
    const char *name = ebpfMonCatalogueName(p->cat, p->record), *cause, *found, *end;
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    int status = -1;

    for (unsigned i = 0; status && (cause = getCell(published, "WAIT_CAUSES", i)) != NULL; i++) {
        if (strcmp(getCell(published, "WAIT_IOCS", i), p->ioc) != 0 || (found = findInList(cause, name)) == NULL ||
            (end = strstr(found, "active for at least ")) == NULL)
            continue;
        end += strcspn(end, ",)");
        if (strncmp(end, ", begun by ", 11) == 0)
            end += 2 + strcspn(end + 2, ",)");
        snprintf(text, size, "%.*s", (int)(end - found), found);
        status = 0;
    }
    ebpfMonPublishedUnlock();
    return status;
}

/* Why this thread waits, as the module waits says it. 0, or -1. */
static int findThreadCause(const char *ioc, const char *thread, char *text, size_t size)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const char *kind;
    int status = -1;

    for (unsigned i = 0; status && (kind = getCell(published, "WAIT_KINDS", i)) != NULL; i++) {
        const char *cause = getCell(published, "WAIT_CAUSES", i), *pv = getCell(published, "WAIT_PVS", i);
        /* a deadlock has one row for all of its threads */
        int isOnThread = strcmp(pv, thread) == 0 || (strstr(cause, "deadlock") && strstr(cause, thread));

        if (strcmp(kind, "thread") == 0 && isOnThread && strcmp(getCell(published, "WAIT_IOCS", i), ioc) == 0) {
            ebpfMonTextCopy(text, size, cause);
            status = 0;
        }
    }
    ebpfMonPublishedUnlock();
    return status;
}

const char *ebpfMonWhyFindUnconnected(const char *name, const char *client, char *text, size_t size)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    int isNumber = client[0] && !client[strspn(client, "0123456789")];
    char wanted[200];
    const char *pv;

    snprintf(wanted, sizeof(wanted), isNumber ? "(%.70s)" : "%s", client); /* "camonitor (4711)" */
    text[0] = 0;
    for (unsigned i = 0; !text[0] && (pv = getCell(published, "UNCONNECTED_PVS", i)) != NULL; i++)
        if (strcmp(pv, name) == 0 && strstr(getCell(published, "UNCONNECTED_CLIENTS", i), wanted))
            ebpfMonTextCopy(text, size, getCell(published, "UNCONNECTED_REASONS", i));
    ebpfMonPublishedUnlock();
    return text;
}

/* How often scanOnce has dropped a record in this IOC; 0: never, or not known. */
static double findOverflows(const char *ioc)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const char *name;
    double found = 0;

    for (unsigned i = 0; (name = getCell(published, "QUEUE_NAMES", i)) != NULL; i++)
        if (strcmp(name, "scanOnce") == 0 && strcmp(getCell(published, "QUEUE_IOCS", i), ioc) == 0)
            memcpy(&found, getCell(published, "QUEUE_OVERFLOW_CNTS", i), sizeof(found));
    ebpfMonPublishedUnlock();
    return found > 0 ? found : 0;
}

/* --- threads ----------------------------------------------------------------------------------------------------- */

/* A line of HANG_STACKS. 0, or -1: there are not so many. */
static int copyHangLine(unsigned index, char line[EBPFMON_HANG_LINE])
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    int isThere = index < published->health.hangLines;

    if (isThere)
        memcpy(line, published->health.hangLine[index], EBPFMON_HANG_LINE);
    ebpfMonPublishedUnlock();
    return isThere ? 0 : -1;
}

/* The hang of a thread that holds the lock set of the record, or of this thread ("wanted"). 0, or -1: there is none. */
static int findHang(const ebpfMonWhyPlace *p, const char *wanted, char *text, size_t size)
{
    char begin[EBPFMON_IOCNAME_SIZE + 40], line[EBPFMON_HANG_LINE], record[EBPFMON_NAME_SIZE], thread[40];
    char cause[400];
    const char *name, *rest;
    long other;

    snprintf(begin, sizeof(begin), "IOC %s (pid %d): thread ", p->ioc, (int)p->pid);
    for (unsigned i = 0; copyHangLine(i, line) == 0; i++) {
        if (strncmp(line, begin, strlen(begin)) != 0)
            continue;
        rest = line + strlen(begin);
        snprintf(thread, sizeof(thread), "%.*s", (int)strcspn(rest, " "), rest);
        name = strstr(rest, " in record ");
        name = name ? name + strlen(" in record ") : "";
        snprintf(record, sizeof(record), "%.*s", (int)strcspn(name, ", "), name);
        other = ebpfMonCatalogueFind(p->cat, record);
        if (wanted ? strcmp(thread, wanted) != 0 :
                   other < 0 || (other != (long)p->record &&
                                 !ebpfMonLockSetsHasBoth(p->mem, p->cat, (uint32_t)other, p->record)))
            continue;
        if (findThreadCause(p->ioc, thread, cause, sizeof(cause)) == 0)
            snprintf(text, size, "thread %s in record %s: %.300s", thread, record, cause);
        else
            ebpfMonTextCopy(text, size, line + strlen(begin) - strlen("thread "));
        return 0;
    }
    return -1;
}

/* Nonzero: it is in a periodic scan list, and scanning is paused. */
static int isPaused(const ebpfMonWhyPlace *p, double period)
{
    uint64_t list = ebpfMonScanListFind(p->pid, p->cat->rec[p->record].addr, p->cat->common.spvt, period);

    return list && ebpfMonScanListCount(p->pid, list) == 0;
}

/* How long the thread takes that scans it, and what takes most of it. 0, or -1: it is not late, or not known. */
static int findLateThread(const ebpfMonWhyPlace *p, const char *scan, double period, char *text, size_t size)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    int status = -1;

    for (unsigned i = 0; status && i < published->health.scans; i++) {
        const ebpfMonScanRow *r = &published->health.scan[i];

        if (strcmp(r->ioc, p->ioc) != 0 || strcmp(r->name, scan) != 0 || !(r->period > FAR_LATE * period) ||
            !(r->busy > BUSY_PERCENT))
            continue;
        snprintf(text, size, "its thread takes %.3g s for a period%s%s", r->period,
                 r->topRoot[0] ? "; most of it takes " : "", r->topRoot);
        status = 0;
    }
    ebpfMonPublishedUnlock();
    return status;
}

/* The hang of the thread that serves callbacks of the record's priority (callback.c; one of several is not known). 0,
 * or -1. "thread" gets its name. */
static int findHungCallbacks(const ebpfMonWhyPlace *p, char *thread, size_t threadSize, char *text, size_t size)
{
    char priority[16];

    ebpfMonWhyReadText(p, "PRIO", priority, sizeof(priority));
    snprintf(thread, threadSize, "cb%s", strcmp(priority, "LOW") == 0 ? "Low" : strcmp(priority, "HIGH") == 0 ? "High" :
             "Medium");
    return findHang(p, thread, text, size);
}

static int findLate(const ebpfMonWhyPlace *p, const recordState *s, double age, char *text, size_t size)
{
    double period = strtod(s->scan, NULL);
    char why[480], since[40] = "it has never completed", thread[48];

    if (age >= 0)
        snprintf(since, sizeof(since), "it has not processed for %.1f s", age);
    if ((strcmp(s->scan, "Event") == 0 || strcmp(s->scan, "I/O Intr") == 0) && !(age >= 0 && age <= LATE_SECONDS) &&
        findHungCallbacks(p, thread, sizeof(thread), why, sizeof(why)) == 0) {
        snprintf(text, size, "SCAN is %s, and %s, which processes it, hangs, so %s: %s", s->scan, thread, since, why);
        return 1;
    }
    if (period <= 0 || (age < 0 && s->time.secPastEpoch))
        return 0;
    snprintf(thread, sizeof(thread), "scan-%g", period);
    if (isPaused(p, period))
        snprintf(text, size, "SCAN is %s, and the scans of this IOC are paused (iocPause)", s->scan);
    else if (age >= 0 && (age <= LATE_PERIODS * period || age <= LATE_SECONDS))
        return 0;
    else if (findHang(p, thread, why, sizeof(why)) == 0)
        snprintf(text, size, "SCAN is %s, and its thread hangs, so %s: %s", s->scan, since, why);
    else if (age < 0)
        return 0;
    else if (findLateThread(p, s->scan, period, why, sizeof(why)) == 0)
        snprintf(text, size, "SCAN is %s, but %s: %s", s->scan, since, why);
    else
        snprintf(text, size, "SCAN is %s, but %s", s->scan, since);
    return 1;
}

/* --- its own faults ---------------------------------------------------------------------------------------------- */

static const char *nameAlarm(int stat)
{
    return stat >= 0 && stat < ALARM_NSTATUS ? epicsAlarmConditionStrings[stat] : "?";
}

/* With its message, where this release of Base keeps one (AMSG). */
static const char *describeAlarm(const ebpfMonWhyPlace *p, int stat, char *text, size_t size)
{
    char message[80];

    ebpfMonWhyReadText(p, "AMSG", message, sizeof(message));
    snprintf(text, size, message[0] ? "%s (%s)" : "%s", nameAlarm(stat), message);
    return text;
}

/* Nonzero: its value is not that of its source, so what follows is of an old value; or its device did not take it. */
static int isSourceBad(const recordState *s)
{
    switch (s->sevr < INVALID_ALARM ? NO_ALARM : s->stat) {
    case SOFT_ALARM: case WRITE_ALARM:
    case READ_ALARM: case COMM_ALARM: case TIMEOUT_ALARM: case LINK_ALARM: case CALC_ALARM: case SCAN_ALARM:
    case HW_LIMIT_ALARM: case UDF_ALARM: case DISABLE_ALARM: case BAD_SUB_ALARM:
        return 1;
    default:
        return 0;
    }
}

/* Nonzero: Base has set PACT for good: record support does so without device support (readValue of aiRecord.c and its
 * kin), sub without a routine (subRecord.c, init_record). */
static int isUnable(const ebpfMonWhyPlace *p, char *why, size_t size)
{
    uint32_t rtype = p->cat->rec[p->record].rtype;
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(p->cat, rtype, "DSET");
    char text[60];
    uint64_t dset;

    why[0] = 0;
    if (ebpfMonWhyReadText(p, "DTYP", text, sizeof(text))[0] && f && !readRaw(p, f->offset, &dset, sizeof(dset)) &&
        !dset)
        snprintf(why, size, "the IOC has no device support \"%s\"", text);
    else if (strcmp(p->cat->rtype[rtype].name, "sub") == 0 && !ebpfMonWhyReadText(p, "SNAM", text, sizeof(text))[0])
        snprintf(why, size, "SNAM is empty");
    return why[0] != 0;
}

static int findInputFault(look *l, const ebpfMonWhyPlace *p, const recordState *s, int depth, char *text, size_t size);
static int findLinkFault(look *l, const ebpfMonWhyPlace *p, char *text, size_t size);
static void addDisabler(look *l, const ebpfMonWhyPlace *p, char *text, size_t size);
static int findLag(look *l, const ebpfMonWhyPlace *p, const recordState *s, char *text, size_t size);

/* What keeps the record from its value: "text" is set. 0: nothing that is known. "depth": 0: it is the one that is
 * asked for; else a source. */
static int findFault(look *l, const ebpfMonWhyPlace *p, const recordState *s, int depth, char *text, size_t size)
{
    double age = findAge(p, s, l->now);
    char why[480], thread[16], alarm[120];

    if (findHang(p, NULL, why, sizeof(why)) == 0) {
        snprintf(text, size, "its lock set is held: %s", why);
    } else if (!isnan(s->disa) && s->disa == s->disv) {
        snprintf(text, size, "it is disabled: DISA is %.0f, as DISV", s->disa);
        addDisabler(l, p, text, size);
    } else if (s->pact && isUnable(p, why, sizeof(why))) {
        snprintf(text, size, "it never processes: PACT is 1, because %s", why);
    } else if (s->pact && findActive(p, why, sizeof(why)) == 0) {
        snprintf(text, size, "PACT is 1: it is processing, and has not completed (%s)", why);
        if (findHungCallbacks(p, thread, sizeof(thread), why, sizeof(why)) == 0)
            ebpfMonTextAdd(text, size, "; %s, which completes it, hangs: %s", thread, why);
    } else if (findLate(p, s, age, text, size) || findInputFault(l, p, s, depth, text, size) ||
             (!depth && findLag(l, p, s, text, size))) {
        return 1;
    } else if (!s->time.secPastEpoch && s->udf && (!depth || l->isInvalid)) {
        snprintf(text, size, "it has never completed a processing, so it has no value: UDF is 1, SCAN is %s%s", s->scan,
                 s->pact ? ", PACT is 1" : "");
    } else if (s->stat == LINK_ALARM && s->sevr >= INVALID_ALARM && findLinkFault(l, p, text, size)) {
        return 1;
    } else if (isSourceBad(s) && (s->stat != UDF_ALARM || !depth || l->isInvalid)) {
        snprintf(text, size, "%s: alarm INVALID, %s", s->stat == WRITE_ALARM ? "it could not write" :
                 "its value is not valid", describeAlarm(p, s->stat, alarm, sizeof(alarm)));
    } else {
        return 0;
    }
    return 1;
}

/* --- its inputs -------------------------------------------------------------------------------------------------- */

/* Where a caLink (dbCaPvt.h) has its link and its flags, since 3.16 and before. The link tells which it is. Before
 * isConnected stand hasReadAccess and hasWriteAccess. */
static const struct { uint16_t link, isConnected; } caLinks[] = { { 32, 114 }, { 24, 82 } };

/* An input of a record. */
typedef struct {
    const char *field;
    char     name[100];    /* the PV to which it leads */
    int      isCa, isCp;
    int      isConnected;  /* 1, 0; -1: not known */
    int      mayNotRead, mayNotWrite; /* it is connected, and its server does not allow it */
    ebpfMonWhyPlace at;    /* its record; at.cat NULL: no watched IOC has it */
} input;

static void readCaLink(const ebpfMonWhyPlace *p, uint64_t at, const ebpfMonLink *link, input *in)
{
    char bytes[120];

    if (!link->pvt || ebpfMonMemRead(p->mem, link->pvt, bytes, sizeof(bytes)))
        return;
    for (size_t i = 0; i < sizeof(caLinks) / sizeof(caLinks[0]); i++)
        if (ebpfMonMemNumberAt(bytes, caLinks[i].link) == at) {
            in->isConnected = bytes[caLinks[i].isConnected] != 0;
            in->mayNotRead = in->isConnected && !bytes[caLinks[i].isConnected - 2];
            in->mayNotWrite = in->isConnected && !bytes[caLinks[i].isConnected - 1];
            return;
        }
}

static void splitPv(const char *pv, char *record, size_t size)
{
    snprintf(record, size, "%.*s", (int)ebpfMonPutGetRecordLength(pv), pv);
}

/* A link of pvAccess: it is not connected if the module queues has found that. 0; or -1: it is none. */
static int readPvaInput(look *l, const ebpfMonWhyPlace *p, const ebpfMonField *f, const ebpfMonLink *link, input *in)
{
    char json[EBPFMON_PVA_LINK_TEXT], record[EBPFMON_NAME_SIZE], asker[200], why[300];
    ebpfMonPvaLink pva;

    if (!ebpfMonPvaLinkIsJson(link) || ebpfMonMemStr(p->mem, link->value, json, sizeof(json)) < 0 ||
        ebpfMonPvaLinkParse(json, &pva))
        return -1;
    ebpfMonTextCopy(in->name, sizeof(in->name), pva.pv);
    snprintf(asker, sizeof(asker), "IOC %s, link %s.%s", p->ioc, ebpfMonCatalogueName(p->cat, p->record), f->name);
    if (ebpfMonWhyFindUnconnected(in->name, asker, why, sizeof(why))[0] ||
        (snprintf(asker, sizeof(asker), "IOC %s, several links", p->ioc),
         ebpfMonWhyFindUnconnected(in->name, asker, why, sizeof(why))[0]))
        in->isConnected = 0;
    splitPv(in->name, record, sizeof(record));
    ebpfMonWhyPlaceFind(l->targets, record, &in->at);
    return 0;
}

/* 0; or -1: the field has no link to a record. The caller clears in->at. */
static int readInput(look *l, const ebpfMonWhyPlace *p, const ebpfMonField *f, input *in)
{
    uint64_t at = p->cat->rec[p->record].addr + f->offset;
    char record[EBPFMON_NAME_SIZE];
    ebpfMonLinkEnd end;
    ebpfMonLink link;
    long own;

    *in = (input){ .field = f->name, .isConnected = -1 };
    if (!p->mem || ebpfMonLinkRead(p->mem, p->cat->base, at, &link))
        return -1;
    if (readPvaInput(l, p, f, &link, in) == 0)
        return 0;
    if ((link.type != EBPFMON_LINK_DB && link.type != EBPFMON_LINK_CA) ||
        ebpfMonMemStr(p->mem, link.pvname, in->name, sizeof(in->name)) < 0)
        return -1;
    ebpfMonTextClean(in->name, sizeof(in->name));
    in->isCa = link.type == EBPFMON_LINK_CA;
    in->isCp = ebpfMonLinkIsCp(&link);
    if (in->isCa)
        readCaLink(p, at, &link, in);
    splitPv(in->name, record, sizeof(record));
    own = in->isCa ? ebpfMonCatalogueFind(p->cat, record) :
          ebpfMonLinkFindEnd(p->mem, p->cat, p->cat->rec[p->record].addr, &link, &end) ? -1 : (long)end.rec;
    if (own < 0 && in->isCa)
        ebpfMonWhyPlaceFind(l->targets, record, &in->at);
    if (own < 0)
        return 0;
    in->at = *p;
    in->at.record = (uint32_t)own;
    in->at.cat = ebpfMonCatalogueHold(p->cat);
    in->at.mem = ebpfMonMemNew(p->pid);
    return 0;
}

/* "its input INP is SRC: it is disabled …" */
static int judgeInput(look *l, const input *in, int depth, char *text, size_t size)
{
    char why[480];
    recordState s;

    snprintf(text, size, "its input %s is %s", in->field, in->name);
    if (in->at.cat && ebpfMonProcStandsStill(in->at.pid, in->at.pid)) {
        ebpfMonTextAdd(text, size, ": IOC %s (pid %d) stands still: a signal or a debugger has stopped its process",
                       in->at.ioc, (int)in->at.pid);
        return 1;
    }
    if (in->isConnected == 0) {
        ebpfMonWhyFindUnconnected(in->name, "", why, sizeof(why));
        ebpfMonTextAdd(text, size, ", which is not connected%s%s", why[0] ? ": " : "", why);
        return 1;
    }
    if (in->mayNotRead) {
        ebpfMonTextAdd(text, size, ", which it may not read: access security of its IOC");
        return 1;
    }
    if (!in->at.cat || (readState(&in->at, &s), !s.isRead) || !findFault(l, &in->at, &s, depth + 1, why, sizeof(why)))
        return 0;
    ebpfMonTextAdd(text, size, ": %s", why);
    return 1;
}

/* Nonzero: this letter stands alone in the expression. */
static int hasArgument(const char *calc, char letter)
{
    for (const char *at = calc; *at; at++) {
        int isAlone = (at == calc || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[1]);

        if (isAlone && toupper((unsigned char)*at) == letter)
            return 1;
    }
    return 0;
}

/* Nonzero: the value depends on INPx, "letter" is x: of sel that one is chosen, of calc and its kin the expressions
 * have it. What is read and not used matters only if it cannot be read: then the record is INVALID. */
static int isUsed(const ebpfMonWhyPlace *p, char letter)
{
    char text[120], other[120];

    if (!letter)
        return 1;
    if (strcmp(ebpfMonWhyReadText(p, "SELM", text, sizeof(text)), "Specified") == 0)
        return ebpfMonWhyReadNumber(p, "SELN") == letter - 'A';
    ebpfMonWhyReadText(p, "CALC", text, sizeof(text));
    ebpfMonWhyReadText(p, "OCAL", other, sizeof(other));
    return !text[0] || strlen(text) + 1 >= sizeof(text) || hasArgument(text, letter) || hasArgument(other, letter);
}

/* Nonzero: the record takes its value from this field now. */
static int isInput(const ebpfMonWhyPlace *p, const ebpfMonField *f)
{
    char text[40];
    int isSimulated = ebpfMonWhyReadText(p, "SIMM", text, sizeof(text))[0] && strcmp(text, "NO") != 0;

    if (f->type != ebpfMonDbfInlink)
        return 0;
    if (strcmp(f->name, "SIOL") == 0)
        return isSimulated;
    if (strcmp(f->name, "DOL") == 0)
        return strcmp(ebpfMonWhyReadText(p, "OMSL", text, sizeof(text)), "closed_loop") == 0;
    if (strncmp(f->name, "DOL", 3) == 0) /* of seq */
        return 1;
    return strncmp(f->name, "INP", 3) == 0 && !isSimulated && isUsed(p, f->name[3]);
}

static int findInputFault(look *l, const ebpfMonWhyPlace *p, const recordState *s, int depth, char *text, size_t size)
{
    double age = findAge(p, s, l->now);
    /* dbGetLink makes a record INVALID if it cannot read a link: such a record may not have taken this input */
    int isGood = s->sevr < INVALID_ALARM && age >= 0 && age <= LATE_SECONDS;
    const ebpfMonRecType *type = &p->cat->rtype[p->cat->rec[p->record].rtype];
    int isFound = 0;

    for (uint32_t i = 0; depth < DEPTH_MAX && !isFound && i < type->fieldCount; i++) {
        const ebpfMonField *f = &p->cat->field[type->firstField + i];
        input in;

        if (!isInput(p, f) || (strncmp(f->name, "DOL", 3) == 0 && f->name[3] && s->sevr < INVALID_ALARM) ||
            l->sources >= SOURCES_MAX || readInput(l, p, f, &in))
            continue;
        l->sources++;
        isFound = (in.isConnected || !isGood) && judgeInput(l, &in, depth, text, size);
        ebpfMonWhyPlaceClear(&in.at);
    }
    return isFound;
}

/* SDIS, and whether its source can still tell that the record may go on; without SDIS who has put DISA. */
static void addDisabler(look *l, const ebpfMonWhyPlace *p, char *text, size_t size)
{
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(p->cat, p->cat->rec[p->record].rtype, "SDIS");
    char sdis[100], why[300] = "";
    input in = { .isConnected = -1 };
    ebpfMonFoundPut put;

    if (!ebpfMonWhyReadText(p, "SDIS", sdis, sizeof(sdis))[0]) {
        if (ebpfMonWhyFindPut(p->ioc, ebpfMonCatalogueName(p->cat, p->record), "DISA", &put) == 0)
            ebpfMonTextAdd(text, size, "; DISA was put: %s", put.text);
        return;
    }
    if (f && readInput(l, p, f, &in) == 0 && !in.isConnected)
        ebpfMonWhyFindUnconnected(in.name, "", why, sizeof(why));
    ebpfMonTextAdd(text, size, "; SDIS is %s%s%s%s", sdis, in.isConnected ? "" : ", which is not connected",
                   why[0] ? ": " : "", why);
    ebpfMonWhyPlaceClear(&in.at);
}

/* An output, or another link as SDIS or SELL, that is not connected, although the record uses it: it has the alarm. */
static int findLinkFault(look *l, const ebpfMonWhyPlace *p, char *text, size_t size)
{
    const ebpfMonRecType *type = &p->cat->rtype[p->cat->rec[p->record].rtype];
    char why[300];
    input out;

    for (uint32_t i = 0; i < type->fieldCount; i++) {
        const ebpfMonField *f = &p->cat->field[type->firstField + i];

        if ((f->type != ebpfMonDbfOutlink && f->type != ebpfMonDbfInlink) || readInput(l, p, f, &out))
            continue;
        ebpfMonWhyPlaceClear(&out.at);
        if (out.isConnected && !(f->type == ebpfMonDbfOutlink ? out.mayNotWrite : out.mayNotRead))
            continue;
        why[0] = 0;
        if (!out.isConnected)
            ebpfMonWhyFindUnconnected(out.name, "", why, sizeof(why));
        snprintf(text, size, "its %s %s is %s, which %s%s%s", f->type == ebpfMonDbfOutlink ? "output" : "link", f->name,
                 out.name, !out.isConnected ? "is not connected" : out.mayNotRead ? "it may not read" :
                 "it may not write: access security of its IOC", why[0] ? ": " : "", why);
        return 1;
    }
    return 0;
}

/* --- a record that runs, and is not what it seems ---------------------------------------------------------------- */

/* The value that the record would have from this source; NaN: not known, because it converts it. */
static double convertInput(const ebpfMonWhyPlace *p, double source)
{
    const char *type = ebpfMonWhyGetType(p);
    char dtyp[48];

    if (strcmp(ebpfMonWhyReadText(p, "DTYP", dtyp, sizeof(dtyp)), "Soft Channel") != 0)
        return NAN;
    if (strcmp(type, "longin") == 0 || strcmp(type, "int64in") == 0 || strcmp(type, "bi") == 0 ||
        strcmp(type, "mbbi") == 0)
        return trunc(source);
    return strcmp(type, "ai") == 0 && ebpfMonWhyReadNumber(p, "SMOO") == 0 ? source : NAN;
}

/* Nonzero: both have a text as their value, and it is not the same one. */
static int hasOtherText(const ebpfMonWhyPlace *p, const ebpfMonWhyPlace *source, char own[80], char other[80])
{
    const ebpfMonField *a = ebpfMonCatalogueFieldNamed(p->cat, p->cat->rec[p->record].rtype, "VAL");
    const ebpfMonField *b = ebpfMonCatalogueFieldNamed(source->cat, source->cat->rec[source->record].rtype, "VAL");
    char dtyp[48];

    return a && b && a->type == ebpfMonDbfString && b->type == ebpfMonDbfString &&
           strcmp(ebpfMonWhyReadText(p, "DTYP", dtyp, sizeof(dtyp)), "Soft Channel") == 0 &&
           strcmp(ebpfMonWhyReadText(p, "VAL", own, 80), ebpfMonWhyReadText(source, "VAL", other, 80)) != 0;
}

/* Its source has another value, and nothing processes the record. */
static int findLag(look *l, const ebpfMonWhyPlace *p, const recordState *s, char *text, size_t size)
{
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(p->cat, p->cat->rec[p->record].rtype, "INP");
    int isPassive = strcmp(s->scan, "Passive") == 0, isFound = 0;
    double age = findAge(p, s, l->now), sourceAge = 0, value = NAN;
    char own[80] = "", other[80] = "";
    recordState source;
    input in;

    if (!l->isStill || !f || !isInput(p, f) || (!isPassive && strcmp(s->scan, "Event") != 0) ||
        readInput(l, p, f, &in))
        return 0;
    if (in.at.cat && !in.name[ebpfMonPutGetRecordLength(in.name)]) {
        readState(&in.at, &source);
        sourceAge = findAge(&in.at, &source, l->now);
        value = source.isRead ? convertInput(p, source.val) : NAN;
        isFound = (!isnan(value) && !isnan(s->val) ? value != s->val : hasOtherText(p, &in.at, own, other)) &&
                  (in.isCp ? sourceAge > 1 : age > OLD_SECONDS);
        if (!own[0] && !other[0]) {
            snprintf(own, sizeof(own), "%.15g", s->val);
            snprintf(other, sizeof(other), "%.15g", value);
        }
    }
    if (isFound && in.isCp)
        snprintf(text, size, "an update of its CP link was lost: INP is %s and %s since %.0f s, and it is %s; queue "
                 "scanOnce of this IOC overflowed %.0f times", in.name, other, sourceAge, own, findOverflows(p->ioc));
    else if (isFound)
        snprintf(text, size, "SCAN is %s, and it has not processed for %.0f s; INP is %s and has changed: it is %s, "
                 "and this record %s", s->scan, age, in.name, other, own);
    ebpfMonWhyPlaceClear(&in.at);
    return isFound;
}

/* A record of which a link processes this one. */
typedef struct {
    uint32_t record;
    char     field[16];
} processor;

/* Returns how many there are; the first ones are in "list". */
static unsigned listProcessors(look *l, const ebpfMonWhyPlace *p, processor list[PROCESSORS_MAX])
{
    unsigned n = 0;

    ebpfMonTargetsLock(l->targets); /* links are exchanged under it (ioc/recordLinks.h) */
    for (uint32_t i = 0; i < p->cat->count; i++) {
        const ebpfMonRecord *r = &p->cat->rec[i];

        for (uint32_t k = 0; k < r->toCount; k++) {
            if (r->to[k] != p->record || i == p->record)
                continue;
            if (n < PROCESSORS_MAX) {
                list[n].record = i;
                memcpy(list[n].field, p->cat->field[r->to[r->toCount + k]].name, sizeof(list[n].field));
            }
            n++;
        }
    }
    ebpfMonTargetsUnlock(l->targets);
    return n;
}

/* Nobody but records whose links lead to it processes it, as far as is known, and all of them are ill. */
static int findProcessor(look *l, const ebpfMonWhyPlace *p, const recordState *s, char *text, size_t size)
{
    processor list[PROCESSORS_MAX];
    ebpfMonWhyPlace from = *p;
    char why[400], first[400] = "";
    unsigned n;

    if (!l->isStill || strcmp(s->scan, "Passive") != 0 || !(findAge(p, s, l->now) > OLD_SECONDS))
        return 0;
    n = listProcessors(l, p, list);
    for (unsigned i = 0; i < n; i++) {
        recordState of;

        if (n > PROCESSORS_MAX)
            return 0;
        from.record = list[i].record;
        readState(&from, &of);
        if (!of.isRead || !findFault(l, &from, &of, 1, why, sizeof(why)))
            return 0;
        if (!i)
            ebpfMonTextCopy(first, sizeof(first), why);
    }
    if (!n)
        return 0;
    snprintf(text, size, "SCAN is Passive, and it has not processed for %.0f s; %s of %s processes it: %s",
             findAge(p, s, l->now), list[0].field, ebpfMonCatalogueName(p->cat, list[0].record), first);
    return 1;
}

/* Somebody has put SCAN to Passive, and it has not processed since. */
static int findUnscanned(look *l, const ebpfMonWhyPlace *p, const recordState *s, char *text, size_t size)
{
    ebpfMonFoundPut put;

    if (!l->isStill || strcmp(s->scan, "Passive") != 0 || !(findAge(p, s, l->now) > OLD_SECONDS) ||
        ebpfMonWhyFindPut(p->ioc, ebpfMonCatalogueName(p->cat, p->record), "SCAN", &put) ||
        epicsTimeGreaterThan(&s->time, &put.time))
        return 0;
    snprintf(text, size, "SCAN is Passive, and it has not processed since that was put: %s", put.text);
    return 1;
}

/* An ao that goes to VAL in steps (OROC). */
static int findRamp(const ebpfMonWhyPlace *p, const recordState *s, char *text, size_t size)
{
    double step = ebpfMonWhyReadNumber(p, "OROC"), out = ebpfMonWhyReadNumber(p, "OVAL");

    if (strcmp(ebpfMonWhyGetType(p), "ao") != 0 || !(step > 0) || isnan(out) ||
        isnan(s->val) || fabs(s->val - out) < step)
        return 0;
    snprintf(text, size, "VAL is %.15g, and its output OVAL %.15g: OROC lets it change by %.15g each time that it "
             "processes", s->val, out, step);
    return 1;
}

static int findSimulation(const ebpfMonWhyPlace *p, char *text, size_t size)
{
    char simm[40], siol[100];

    if (!ebpfMonWhyReadText(p, "SIMM", simm, sizeof(simm))[0] || strcmp(simm, "NO") == 0)
        return 0;
    ebpfMonWhyReadText(p, "SIOL", siol, sizeof(siol));
    snprintf(text, size, "it is simulated: SIMM is %s, so its value is %s %.80s, not of its device", simm,
             siol[0] ? "of SIOL" : "of SVAL", siol);
    return 1;
}

static int findOldStamp(const ebpfMonWhyPlace *p, const recordState *before, const recordState *s, epicsTimeStamp now,
                        char *text, size_t size)
{
    double ahead = epicsTimeDiffInSeconds(&s->time, &now);
    char tsel[100];

    ebpfMonWhyReadText(p, "TSEL", tsel, sizeof(tsel));
    if (ahead > FUTURE_SECONDS) {
        snprintf(text, size, "its time stamp is %.0f s in the future: TSE is %d%s%s%s", ahead, s->tse, s->tse == -2 ?
                 ", the device support sets it" : s->tse ? ", the time of this event" : tsel[0] ? "" :
                 ", the clock of the IOC was ahead then, or is", tsel[0] ? "; TSEL is " : "", tsel);
        return 1;
    }
    if (isnan(s->val) || s->val == before->val || !isSameTime(s, before) || (!s->tse && !tsel[0]))
        return 0;
    snprintf(text, size, "its value changes, and its time stamp stands still: TSE is %d%s%s%s", s->tse,
             s->tse == -2 ? ", the device support sets it" : s->tse > 0 ? ", the time of this event" : "",
             tsel[0] ? "; TSEL is " : "", tsel);
    return 1;
}

static int findHysteresis(const ebpfMonWhyPlace *p, const recordState *s, char *text, size_t size)
{
    const char *limit = s->stat == HIHI_ALARM ? "HIHI" : s->stat == HIGH_ALARM ? "HIGH" :
                        s->stat == LOLO_ALARM ? "LOLO" : s->stat == LOW_ALARM ? "LOW" : NULL;
    double at = limit ? ebpfMonWhyReadNumber(p, limit) : NAN, hyst = ebpfMonWhyReadNumber(p, "HYST");
    int isHigh = limit && limit[0] == 'H';

    if (!s->sevr || isnan(at) || !(isHigh ? s->val < at && s->val >= at - hyst : s->val > at && s->val <= at + hyst))
        return 0;
    snprintf(text, size, "its alarm %s stays: VAL %.15g is %s %s (%.15g), but by no more than HYST (%.15g)",
             nameAlarm(s->stat), s->val, isHigh ? "under" : "over", limit, at, hyst);
    return 1;
}

static int findOddity(const ebpfMonWhyPlace *p, const recordState *before, const recordState *s, epicsTimeStamp now,
                      char *text, size_t size)
{
    double period = strtod(s->scan, NULL);
    char why[160];

    if (findSimulation(p, text, size) || findRamp(p, s, text, size) || findOldStamp(p, before, s, now, text, size) ||
        findHysteresis(p, s, text, size))
        return 1;
    if (period <= 0 || findLateThread(p, s->scan, period, why, sizeof(why)))
        return 0;
    snprintf(text, size, "SCAN is %s, but %s", s->scan, why);
    return 1;
}

ebpfMonRecordState ebpfMonWhyRecord(ebpfMonTargets *targets, const ebpfMonWhyPlace *p, int *isStill, char *text,
                                    size_t size)
{
    look l = { .targets = targets };
    recordState before, s;
    char alarm[120];
    double age;

    readState(p, &before);
    epicsThreadSleep(AGAIN_SECONDS);
    readState(p, &s);
    epicsTimeGetCurrent(&l.now);
    *isStill = 0;
    if (!s.isRead || !before.isRead) {
        snprintf(text, size, "the memory of the IOC cannot be read now");
        return ebpfMonRecordNotRead;
    }
    l.isInvalid = s.sevr >= INVALID_ALARM;
    l.isStill = *isStill = !s.pact && isSameTime(&s, &before);
    age = findAge(p, &s, l.now);
    if (findFault(&l, p, &s, 0, text, size) || findProcessor(&l, p, &s, text, size) ||
        findUnscanned(&l, p, &s, text, size) || findOddity(p, &before, &s, l.now, text, size))
        return ebpfMonRecordStops;
    if (age >= 0) {
        snprintf(text, size, "last processed %.1f s ago; SCAN %s%s%s%s%s", age, s.scan, s.sevr ? ", alarm " : "",
                 s.sevr ? describeAlarm(p, s.stat, alarm, sizeof(alarm)) : "", s.pact ? "; PACT is 1" : "",
                 ebpfMonWhyReadNumber(p, "DISP") > 0 ? "; DISP is 1: nobody may write" : "");
        return ebpfMonRecordFine;
    }
    snprintf(text, size, "SCAN %s; %s", s.scan, s.time.secPastEpoch ? "its time stamp does not tell when it processed" :
             "it has not processed yet");
    return s.time.secPastEpoch ? ebpfMonRecordUnknown : ebpfMonRecordFine;
}
