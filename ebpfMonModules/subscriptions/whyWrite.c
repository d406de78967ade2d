/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USE_TYPED_RSET
#include <alarm.h>
#include <dbAccessDefs.h>
#include <errSymTbl.h>
#include <special.h>

#include "common/clock.h"
#include "common/text.h"
#include "host/procStat.h"
#include "ioc/baseLayout.h"
#include "model/published.h"
#include "subscriptions/accessRules.h"
#include "subscriptions/flowIoc.h"
#include "subscriptions/whyWrite.h"
#include "shared/iocInventory.h"
#include "waits/iocWaits.h"

#define BATCH 4096 /* records that are read in one job */

/* A put as it is told. */
typedef struct {
    const ebpfMonWhyPlace *at;
    const char *field;
    int      isFound;
    ebpfMonPut put;         /* the newest one of this client */
    int      isOverwritten; /* … by somebody else's, the next one after it */
    ebpfMonPut next;
} foundPuts;

static int isOfClient(const ebpfMonPut *put, const char *client)
{
    return ebpfMonFlowIsText(client, put->who, put->peer, put->command, (pid_t)put->peerPid);
}

/* Looks through the puts that are kept, of both kinds. */
static void findPuts(const char *ioc, const char *pv, const char *client, foundPuts *found)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonPut *put = NULL, *next = NULL;

    for (int kind = 0; kind < ebpfMonPutKinds; kind++)
        for (unsigned i = 0; i < published->puts.of[kind].kept; i++) {
            const ebpfMonPut *p = &published->puts.of[kind].put[published->puts.of[kind].order[i]];

            if (strcmp(p->ioc, ioc) == 0 && strcmp(p->pv, pv) == 0 && isOfClient(p, client) &&
                (!put || p->at > put->at))
                put = p;
        }
    for (int kind = 0; put && kind < ebpfMonPutKinds; kind++)
        for (unsigned i = 0; i < published->puts.of[kind].kept; i++) {
            const ebpfMonPut *p = &published->puts.of[kind].put[published->puts.of[kind].order[i]];

            if (strcmp(p->ioc, ioc) == 0 && strcmp(p->pv, pv) == 0 && p->at > put->at && (!next || p->at < next->at) &&
                (p->result == ebpfMonPutOk || p->result == ebpfMonPutSent))
                next = p;
        }
    found->isFound = put != NULL;
    if (put)
        found->put = *put;
    found->isOverwritten = next != NULL;
    if (next)
        found->next = *next;
    ebpfMonPublishedUnlock();
}

/* "2026-11-21 07:28:03: 115 by root@host" */
static void namePut(const ebpfMonPut *put, char *text, size_t size)
{
    char time[24] = "";

    epicsTimeToStrftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S", &put->time);
    snprintf(text, size, "%.40s of %s by %.100s%.70s", put->val, time, put->link[0] ? "link " : put->who, put->link);
}

int ebpfMonWhyFindPut(const char *ioc, const char *record, const char *field, ebpfMonFoundPut *put)
{
    foundPuts *found = calloc(1, sizeof(*found));
    char pv[EBPFMON_NAME_SIZE + 20];
    int status = -1;

    if (!found)
        return -1;
    snprintf(pv, sizeof(pv), "%s.%s", record, field);
    findPuts(ioc, pv, "", found);
    if (found->isFound && found->put.result == ebpfMonPutOk) {
        put->time = found->put.time;
        namePut(&found->put, put->text, sizeof(put->text));
        status = 0;
    }
    free(found);
    return status;
}

/* --- put-callbacks ----------------------------------------------------------------------------------------------- */

/* A record for which a put-callback to "record" waits. An active record first; a motor that moves is not active. NULL:
 * no put-callback waits. */
static const ebpfMonActiveRecord *findAwaited(ebpfMonIocWaits *ioc, uint32_t record)
{
    const ebpfMonActiveRecord *found = NULL;

    for (size_t i = 0; i < ioc->puts; i++) {
        const ebpfMonWaitingPut *put = &ioc->put[i];

        for (uint32_t k = 0; put->record == record && k < put->waitedCount && k < EBPFMON_WAITED_MAX; k++) {
            const ebpfMonActiveRecord *r = ebpfMonIocWaitsFind(ioc, put->waited[k]);

            if (r && (!found || r->isActive > found->isActive))
                found = r;
        }
    }
    return found;
}

/* Nonzero: a put-callback to this record waits, and "text" says for what. Looks at all records, because it may process
 * any of them. */
static int describeNotify(const ebpfMonWhyPlace *at, char *text, size_t size)
{
    ebpfMonCatalogue *cat = at->cat;
    ebpfMonIocWaits ioc = { .pid = at->pid };
    const ebpfMonActiveRecord *awaited;

    ebpfMonIocWaitsSetCatalogue(&ioc, ebpfMonCatalogueHold(cat));
    do
        ebpfMonIocWaitsLook(&ioc, BATCH, ebpfMonClockMonotonic());
    while (ioc.isRead && !ioc.rounds);
    awaited = findAwaited(&ioc, at->record);
    if (awaited && awaited->isActive)
        snprintf(text, size, "; a put-callback waits for %s, which is processing",
                 ebpfMonCatalogueName(cat, awaited->record));
    else if (awaited)
        snprintf(text, size, "; a put-callback waits for %s, which has not completed (%s, PACT is 0)",
                 ebpfMonCatalogueName(cat, awaited->record), cat->rtype[cat->rec[awaited->record].rtype].name);
    ebpfMonIocWaitsClear(&ioc);
    return awaited != NULL;
}

/* --- what became of it ------------------------------------------------------------------------------------------- */

/* Its level of access security (dbFldDes.as_level); 0: it is not known. */
static int readLevel(ebpfMonMem *mem, const ebpfMonField *f)
{
    struct layoutFldDes des;

    return !f || ebpfMonMemRead(mem, f->addr, &des, sizeof(des)) ? 0 : (int)des.as_level;
}

/* Why a put was refused, as far as the record, access security and the server say it. */
static void describeRefusal(const foundPuts *found, char *text, size_t size)
{
    const ebpfMonWhyPlace *at = found->at;
    const ebpfMonPut *put = &found->put;
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(at->cat, at->cat->rec[at->record].rtype, found->field);
    char asg[41] = "", words[80] = "", rules[300] = "";
    int isDisp = ebpfMonWhyReadNumber(found->at, "DISP") > 0;

    ebpfMonWhyReadText(found->at, "ASG", asg, sizeof(asg));
    if (put->result != ebpfMonPutDenied && put->status && !put->message[0])
        errSymLookup(put->status, words, sizeof(words));
    if (put->status == S_db_putDisabled || (isDisp && put->result != ebpfMonPutDenied && !words[0]))
        snprintf(text, size, isDisp ? "DISP is 1" : "DISP was 1; now it is 0");
    else if (put->result == ebpfMonPutDenied && f && f->special == SPC_NOMOD)
        snprintf(text, size, "nobody may write the field %s", found->field);
    else if (put->result == ebpfMonPutDenied && at->mem &&
             ebpfMonAccessRulesDescribe(at->mem, at->pid, asg, readLevel(at->mem, f), rules, sizeof(rules)) == 0)
        snprintf(text, size, "access security does not allow it; %s", rules);
    else if (put->result == ebpfMonPutDenied)
        snprintf(text, size, "no write access by access security (ASG %s), or a field that nobody may write",
                 asg[0] ? asg : "DEFAULT");
    else
        snprintf(text, size, "%s", put->message[0] ? put->message : words[0] ? words : "the IOC gives no reason");
}

/* Nonzero: a put of more elements than the array has room for; dbPut (dbAccess.c) leaves the others out. */
static int isTooLong(const foundPuts *found, char *text, size_t size)
{
    const ebpfMonPut *put = &found->put;
    double room = strcmp(found->field, "VAL") == 0 ? ebpfMonWhyReadNumber(found->at, "NELM") : NAN;

    if (!(room > 0) || (double)put->count <= room)
        return 0;
    snprintf(text, size, "only the first %.0f of %ld elements: NELM is %.0f", room, put->count, room);
    return 1;
}

/* Which limit the value after the put is. */
static const char *nameLimit(const foundPuts *found)
{
    static const char *const limits[] = { "DRVH", "DRVL" };
    const ebpfMonPut *put = &found->put;
    char *end;
    double after = strtod(put->after, &end);

    for (int i = 0; i < 2 && end != put->after; i++)
        if (put->isNumber && after == ebpfMonWhyReadNumber(found->at, limits[i]) &&
            (i ? put->number < after : put->number > after))
            return limits[i];
    return NULL;
}

/* Nonzero: the record has processed without an error since the put. */
static int hasProcessedSince(const foundPuts *found)
{
    const ebpfMonCatalogue *cat = found->at->cat;
    uint64_t at = cat->rec[found->at->record].addr;
    epicsTimeStamp stamp;
    uint16_t sevr;

    return ebpfMonWhyReadNumber(found->at, "TSE") == 0 &&
           ebpfMonMemRead(found->at->mem, at + cat->common.time, &stamp, sizeof(stamp)) == 0 &&
           ebpfMonMemRead(found->at->mem, at + cat->common.sevr, &sevr, sizeof(sevr)) == 0 &&
           sevr < INVALID_ALARM && epicsTimeGreaterThan(&stamp, &found->put.time);
}

/* Nonzero: … and has read its value anew, or makes it itself, so that what was put is gone; "how" tells by which
 * field. */
static int isMadeAgain(const foundPuts *found, char *how, size_t size)
{
    static const char *const makers[][2] = { { "calc", "CALC" }, { "calcout", "CALC" }, { "sel", "SELM" },
                                             { "sub", "SNAM" } };
    const char *type = ebpfMonWhyGetType(found->at), *name = "INP";
    char text[100], simm[40], *end;

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
        name = strcmp(type, makers[i][0]) == 0 ? makers[i][1] : name;
    ebpfMonWhyReadText(found->at, name, text, sizeof(text));
    ebpfMonWhyReadText(found->at, "SIMM", simm, sizeof(simm));
    snprintf(how, size, "%s %s (%s)", name[0] == 'I' ? "reads" : "makes it by", name, text);
    strtod(text, &end);
    return strcmp(found->field, "VAL") == 0 && text[0] && (*end || name[0] != 'I') &&
           (!simm[0] || strcmp(simm, "NO") == 0) && hasProcessedSince(found);
}

/* Nonzero: this process has started after the put. */
static int isOfBefore(const foundPuts *found)
{
    double age = (double)(ebpfMonClockMonotonic() - found->put.at) / 1e9;
    ebpfMonProcStat stat;

    return ebpfMonProcStatGet(found->at->pid, &stat) == 0 && age > stat.uptime;
}

/* Nonzero: a bo that was 1 for *high seconds, and is 0. */
static int isMomentary(const foundPuts *found, double *high)
{
    const ebpfMonWhyPlace *at = found->at;
    const ebpfMonPut *put = &found->put;
    const ebpfMonRecord *r = &at->cat->rec[at->record];
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(at->cat, r->rtype, "VAL");
    char zero[40];
    uint16_t value;

    ebpfMonWhyReadText(at, "ZNAM", zero, sizeof(zero));
    *high = strcmp(ebpfMonWhyGetType(at), "bo") == 0 ? ebpfMonWhyReadNumber(at, "HIGH") : 0;
    return *high > 0 && strcmp(put->val, "0") != 0 && strcmp(put->val, zero) != 0 && f &&
           strcmp(found->field, "VAL") == 0 && at->mem &&
           !ebpfMonMemRead(at->mem, r->addr + f->offset, &value, sizeof(value)) && !value;
}

static ebpfMonWriteFate tellMade(const foundPuts *found, const char *name, char *text, size_t size)
{
    const ebpfMonPut *put = &found->put;
    double now = ebpfMonWhyReadNumber(found->at, found->field);
    char other[240], *end;
    double after = put->after[0] ? strtod(put->after, &end) : put->number;
    const char *limit;
    char omsl[40], dol[100];
    double high;
    int isCut;

    if (isOfBefore(found)) {
        snprintf(text, size, "%.200s was made, and the IOC has been restarted since", name);
        if (!isnan(now))
            ebpfMonTextAdd(text, size, "; the field is %.15g now", now);
        return put->isNumber && !isnan(now) && now != after ? ebpfMonWriteStops : ebpfMonWriteHolds;
    }
    if (found->isOverwritten) {
        namePut(&found->next, other, sizeof(other));
        snprintf(text, size, "%.200s was made, and then overwritten: %s", name, other);
        if (put->isNumber && now == after) {
            ebpfMonTextAdd(text, size, "; it is %.15g again", now);
            return ebpfMonWriteHolds;
        }
        return ebpfMonWriteStops;
    }
    if (put->after[0]) {
        limit = nameLimit(found);
        ebpfMonWhyReadText(found->at, "OMSL", omsl, sizeof(omsl));
        if (!limit && strcmp(found->field, "VAL") == 0 && strcmp(omsl, "closed_loop") == 0) {
            ebpfMonWhyReadText(found->at, "DOL", dol, sizeof(dol));
            snprintf(text, size, "%s was made, and the field is %.40s afterwards: OMSL is closed_loop, so it takes its "
                     "value from DOL (%.80s)", name, put->after, dol);
            return ebpfMonWriteStops;
        }
        snprintf(text, size, "%s was made, and the field is %.40s afterwards%s%s", name, put->after,
                 limit ? ": its limit is " : ": the record has changed it", limit ? limit : "");
        return ebpfMonWriteStops;
    }
    if (put->isNumber && !isnan(now) && now != after && isMadeAgain(found, other, sizeof(other))) {
        snprintf(text, size, "%s was made, and then overwritten by its processing, which %s: it is %.15g "
                 "now", name, other, now);
        return ebpfMonWriteStops;
    }
    if (isMomentary(found, &high)) {
        snprintf(text, size, "%s was made; HIGH is %.15g s, so it went back by itself", name, high);
        return ebpfMonWriteStops;
    }
    if (put->isNumber && !isnan(now) && now != after) {
        snprintf(text, size, "%s was made; the field is %.15g now: by its processing, or a put that is not seen", name,
                 now);
        return ebpfMonWriteUnknown;
    }
    isCut = isTooLong(found, other, sizeof(other));
    snprintf(text, size, isCut ? "%s was made, but %s" : "%s was made", name, other);
    return isCut ? ebpfMonWriteStops : ebpfMonWriteHolds;
}

static ebpfMonWriteFate tellPut(const foundPuts *found, char *text, size_t size)
{
    char name[240], refusal[340];

    namePut(&found->put, name, sizeof(name));
    switch (found->put.result) {
    case ebpfMonPutOk:
        return tellMade(found, name, text, size);
    case ebpfMonPutDenied: case ebpfMonPutFailed:
        describeRefusal(found, refusal, sizeof(refusal));
        snprintf(text, size, "%.160s was refused: %s", name, refusal);
        return ebpfMonWriteStops;
    case ebpfMonPutLost:
        snprintf(text, size, "%s came to the server, and the IOC never made it", name);
        return ebpfMonWriteStops;
    case ebpfMonPutUnwritten:
        snprintf(text, size, "%s: the server says that it is made, and the IOC wrote no record", name);
        return ebpfMonWriteStops;
    default:
        snprintf(text, size, "%s: its result was not seen", name);
        return ebpfMonWriteUnknown;
    }
}

void ebpfMonWhyWrite(const ebpfMonWhyPlace *at, const char *field, const char *client, ebpfMonWriteStory *story)
{
    foundPuts *found = calloc(1, sizeof(*found));
    char pv[EBPFMON_NAME_SIZE + 20], notify[240];
    epicsTimeStamp now;

    story->age = 0;
    story->fate = ebpfMonWriteUnknown;
    snprintf(story->text, sizeof(story->text), "out of memory");
    if (!found)
        return;
    snprintf(pv, sizeof(pv), "%s%s%s", ebpfMonCatalogueName(at->cat, at->record),
             strcmp(field, "VAL") == 0 ? "" : ".", strcmp(field, "VAL") == 0 ? "" : field);
    found->at = at;
    found->field = field;
    findPuts(at->ioc, pv, client, found);
    if (at->mem)
        ebpfMonMemFlush(at->mem);
    if (found->isFound) {
        epicsTimeGetCurrent(&now);
        story->age = epicsTimeDiffInSeconds(&now, &found->put.time);
        story->fate = tellPut(found, story->text, sizeof(story->text));
    } else {
        story->fate = ebpfMonWriteNotSeen;
        snprintf(story->text, sizeof(story->text), "no write%s%.60s is among the last %d puts of people, or of links "
                 "and programs; the history has older ones", client[0] ? " by " : "", client, EBPFMON_PUTS_MAX);
    }
    if (describeNotify(at, notify, sizeof(notify))) {
        if (story->fate == ebpfMonWriteHolds || story->fate == ebpfMonWriteNotSeen)
            story->fate = ebpfMonWriteAtWork;
        ebpfMonTextCopy(story->text + strlen(story->text), sizeof(story->text) - strlen(story->text), notify);
    }
    free(found);
}
