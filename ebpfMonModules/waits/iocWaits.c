/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dbCommon.ppn → processNotify → notifyPvt.waitList → processNotifyRecord (dbCommon.ppnr) → dbCommon, and from there
 * restartList → processNotify (dbNotify.c, dbNotify.h). The IOC goes on meanwhile: a notifyPvt has a magic number and
 * leads back to its processNotify, a processNotifyRecord to its record, a channel_in_use of rsrv to the channel.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/text.h"
#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"
#include "shared/iocInventory.h"
#include "waits/iocWaits.h"

#define COMMON_MAX    1024  /* from LCNT to TIME in dbCommon it is some 100 bytes */
#define ACTIVES_MAX   2000
#define PUTS_MAX      200
#define QUEUED_MAX    64    /* puts that wait for one record */
#define MANY_TIMES    10    /* dbAccess.c: MAX_LOCK, after which LCNT counts no further */

/* dbNotify.c: notifyPvt, notifyState; before 3.15 putNotifyPvt, putNotifyState. The numbers are alike since 3.14.12
 * (SAME in tools/layoutNumbers.h). */
#define NOTIFY_MAGIC  0xfedc0123ull
enum { notifyPvtMagic = 16, notifyPvtState = 24, notifyPvtUser = 48, notifyPvtWaitList = 64, notifyPvtSize = 88 };
enum { waitForRestart = 1, restartRequested, restartInProgress, processInProgress };
/* processNotifyRecord */
enum { ppnrRestartList = 24, ppnrRecord = 48, ppnrSize = 56 };
/* processNotify, before its chan; and before 3.15 putNotify, behind its usrPvt */
enum { beforeChanPvt = 24, beforeChanRequest = 8, behindUserPvt = 16 };

/* Where the members of dbCommon lie that are read of each record; "from": the first one. */
typedef struct {
    uint16_t from, size, lcnt, pact, ppn, ppnr, time;
} commonPart;

static uint16_t fieldOffset(const ebpfMonCatalogue *cat, const char *name)
{
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, 0, name);

    return f ? f->offset : 0;
}

/* 0, or -1: this dbCommon is not as expected. */
static int findPart(const ebpfMonCatalogue *cat, commonPart *p)
{
    uint16_t end;

    *p = (commonPart){ .lcnt = fieldOffset(cat, "LCNT"), .pact = cat->common.pact, .ppn = cat->common.ppn,
                       .ppnr = fieldOffset(cat, "PPNR"), .time = cat->common.time };
    p->from = p->lcnt < p->pact ? p->lcnt : p->pact;
    end = (uint16_t)(p->time + sizeof(epicsTimeStamp));
    if (!p->lcnt || !p->ppnr || p->ppn < p->from || p->ppnr < p->from || p->ppn > end || p->ppnr > end ||
        end <= p->from || end - p->from > COMMON_MAX)
        return -1;
    p->size = (uint16_t)(end - p->from);
    return 0;
}

/* --- records ---------------------------------------------------------------------------------------------------- */

ebpfMonActiveRecord *ebpfMonIocWaitsFind(ebpfMonIocWaits *ioc, uint32_t record)
{
    for (size_t i = 0; i < ioc->actives; i++)
        if (ioc->active[i].record == record)
            return &ioc->active[i];
    return NULL;
}

static void decodeRecord(const commonPart *p, const char *bytes, ebpfMonActiveRecord *r)
{
    r->isActive = bytes[p->pact - p->from] != 0;
    r->lcnt = (uint8_t)bytes[p->lcnt - p->from];
    r->ppn = ebpfMonMemNumberAt(bytes, p->ppn - p->from);
    r->ppnr = ebpfMonMemNumberAt(bytes, p->ppnr - p->from);
    memcpy(&r->time, bytes + p->time - p->from, sizeof(r->time));
}

/* Reads records of the catalogue, each with its index set. 0, or -1. */
static int readRecords(ebpfMonIocWaits *ioc, const commonPart *p, ebpfMonActiveRecord *record, size_t count)
{
    ebpfMonMemPart *part = malloc((count + 1) * sizeof(*part));
    char *bytes = malloc(count * p->size + 1);
    int status = part && bytes ? 0 : -1;

    for (size_t i = 0; !status && i < count; i++)
        part[i] = (ebpfMonMemPart){ ioc->cat->rec[record[i].record].addr + p->from, p->size };
    if (!status && count)
        status = ebpfMonMemReadParts(ioc->pid, part, count, bytes, count * p->size);
    for (size_t i = 0; !status && i < count; i++)
        decodeRecord(p, bytes + i * p->size, &record[i]);
    free(part);
    free(bytes);
    return status;
}

static int hasUnsureTime(const ebpfMonIocWaits *ioc, uint32_t record)
{
    return (ioc->cat->rec[record].flags & (EBPFMON_REC_TSE | EBPFMON_REC_STAMPED)) != 0;
}

static void addActive(ebpfMonIocWaits *ioc, const ebpfMonActiveRecord *seen, uint64_t now)
{
    ebpfMonActiveRecord *r;

    if (ebpfMonIocWaitsFind(ioc, seen->record) || ioc->actives >= ACTIVES_MAX ||
        ebpfMonArrayGrow(&ioc->active, &ioc->activeRoom, ioc->actives + 1, 16, sizeof(*ioc->active)))
        return;
    r = &ioc->active[ioc->actives++];
    *r = *seen;
    r->since = now;
    r->isUnsure = hasUnsureTime(ioc, seen->record);
    r->what[0] = 0;
}

/* Reads again what was active. 0, or -1. */
static int updateActives(ebpfMonIocWaits *ioc, const commonPart *p, uint64_t now)
{
    ebpfMonActiveRecord *fresh = malloc((ioc->actives + 1) * sizeof(*fresh));
    size_t kept = 0;

    if (!fresh)
        return -1;
    memcpy(fresh, ioc->active, ioc->actives * sizeof(*fresh));
    if (readRecords(ioc, p, fresh, ioc->actives)) {
        free(fresh);
        return -1;
    }
    for (size_t i = 0; i < ioc->actives; i++) {
        ebpfMonActiveRecord *old = &ioc->active[i], *r = &fresh[i];

        if (!old->isActive || memcmp(&old->time, &r->time, sizeof(r->time)) != 0)
            r->since = now;
        if (r->isActive || r->ppn)
            ioc->active[kept++] = *r;
    }
    ioc->actives = kept;
    free(fresh);
    return 0;
}

static int lookInTurn(ebpfMonIocWaits *ioc, const commonPart *p, uint32_t count, uint64_t now)
{
    ebpfMonActiveRecord *seen;
    int status;

    if (count > ioc->cat->count)
        count = ioc->cat->count;
    seen = calloc(count + 1u, sizeof(*seen));
    if (!seen)
        return -1;
    for (uint32_t i = 0; i < count; i++)
        seen[i].record = (ioc->next + i) % ioc->cat->count;
    status = readRecords(ioc, p, seen, count);
    for (uint32_t i = 0; !status && i < count; i++)
        if (seen[i].isActive || seen[i].ppn)
            addActive(ioc, &seen[i], now);
    if (!status && count) {
        ioc->rounds += ioc->next + count >= ioc->cat->count;
        ioc->next = (ioc->next + count) % ioc->cat->count;
    }
    free(seen);
    return status;
}

/* --- puts ------------------------------------------------------------------------------------------------------- */

static ebpfMonWaitingPut *findPut(ebpfMonIocWaits *ioc, uint64_t at)
{
    for (size_t i = 0; i < ioc->puts; i++)
        if (ioc->put[i].at == at)
            return &ioc->put[i];
    return NULL;
}

/* Reads the channel, and the record to which it leads. 0, or -1. */
static int readChannel(ebpfMonIocWaits *ioc, ebpfMonWaitingPut *put)
{
    const ebpfMonBaseRelease *base = ioc->cat->base;
    const ebpfMonField *f;
    struct layoutDbAddr addr;
    struct layoutDbChannel channel = { .name = 0 };
    char name[80] = "";
    long record;

    if (base->has.channels ? ebpfMonMemRead(ioc->mem, put->chan, &channel, sizeof(channel))
                           : ebpfMonMemRead(ioc->mem, put->chan, &channel.addr, sizeof(channel.addr)))
        return -1;
    addr = channel.addr;
    record = ebpfMonCatalogueFindAddr(ioc->cat, addr.precord);
    if (record < 0)
        return -1;
    put->record = (uint32_t)record;
    f = ebpfMonCatalogueField(ioc->cat, addr.pfldDes);
    snprintf(put->field, sizeof(put->field), "%s%s%s", ebpfMonCatalogueName(ioc->cat, put->record),
             f && strcmp(f->name, "VAL") != 0 ? "." : "", f && strcmp(f->name, "VAL") != 0 ? f->name : "");
    if (channel.name)
        ebpfMonMemStr(ioc->mem, channel.name, name, sizeof(name));
    ebpfMonTextCopy(put->pv, sizeof(put->pv), name[0] ? name : put->field);
    return 0;
}

static void readName(ebpfMonIocWaits *ioc, uint64_t at, char *text, size_t size)
{
    char name[64];

    if (!at || ebpfMonMemStr(ioc->mem, at, name, sizeof(name)))
        name[0] = 0;
    ebpfMonTextCopy(text, size, name[0] ? name : "?");
}

/* usrPvt is a channel_in_use of rsrv, if that leads to the same channel; another user of dbNotify has something else
 * there. */
static void readClient(ebpfMonIocWaits *ioc, uint64_t usrPvt, ebpfMonWaitingPut *put)
{
    const ebpfMonBaseRelease *b = ioc->cat->base;
    struct { uint16_t family, port; uint32_t addr; } peer;
    char user[64], host[64], addr[INET_ADDRSTRLEN] = "?";

    if (!usrPvt || usrPvt % sizeof(uint64_t) ||
        (b->has.channels ? ebpfMonMemPtr(ioc->mem, usrPvt + b->channel.dbch) : usrPvt + b->channel.dbch) != put->chan)
        return;
    put->client = ebpfMonMemPtr(ioc->mem, usrPvt + b->channel.client);
    if (!put->client || ebpfMonMemRead(ioc->mem, put->client + b->client.addr, &peer, sizeof(peer)) ||
        peer.family != 2) { /* AF_INET */
        put->client = 0;
        return;
    }
    readName(ioc, ebpfMonMemPtr(ioc->mem, put->client + b->client.pUserName), user, sizeof(user));
    ebpfMonTextMarkClaim(user, sizeof(user));
    readName(ioc, ebpfMonMemPtr(ioc->mem, put->client + b->client.pHostName), host, sizeof(host));
    inet_ntop(AF_INET, &peer.addr, addr, sizeof(addr));
    snprintf(put->peer, sizeof(put->peer), "%s:%u", addr, (unsigned)ntohs(peer.port));
    snprintf(put->who, sizeof(put->who), "%s@%s", user, host);
}

static void addWaited(ebpfMonWaitingPut *put, uint32_t record)
{
    if (put->waitedCount < EBPFMON_WAITED_MAX)
        put->waited[put->waitedCount] = record;
    put->waitedCount++;
}

/* Returns the record of a processNotifyRecord; -1: it is none. */
static long readWaitedRecord(ebpfMonIocWaits *ioc, uint64_t at, char bytes[ppnrSize])
{
    return ebpfMonMemRead(ioc->mem, at, bytes, ppnrSize) ? -1 :
           ebpfMonCatalogueFindAddr(ioc->cat, ebpfMonMemNumberAt(bytes, ppnrRecord));
}

/* 0; -1: this is no put that waits, or the lists are just being changed. */
static int readWaitList(ebpfMonIocWaits *ioc, uint64_t pvt, ebpfMonWaitingPut *put)
{
    char bytes[notifyPvtSize], node[ppnrSize];
    struct layoutList list;
    uint64_t at;
    int16_t state;

    if (!pvt || ebpfMonMemRead(ioc->mem, pvt, bytes, sizeof(bytes)) ||
        ebpfMonMemNumberAt(bytes, notifyPvtMagic) != NOTIFY_MAGIC ||
        ebpfMonMemNumberAt(bytes, notifyPvtUser) != put->at)
        return -1;
    memcpy(&state, bytes + notifyPvtState, sizeof(state));
    memcpy(&list, bytes + notifyPvtWaitList, sizeof(list));
    if (state < waitForRestart || state > processInProgress)
        return -1;
    put->isQueued = state == waitForRestart || state == restartRequested;
    put->hasWritten = state == processInProgress;
    at = list.first;
    for (int32_t n = 0; at && n < list.count && n < EBPFMON_WAITED_MAX; n++) {
        long record = readWaitedRecord(ioc, at, node);

        if (record < 0)
            return -1;
        addWaited(put, (uint32_t)record);
        at = ebpfMonMemNumberAt(node, 0);
    }
    if (list.count > EBPFMON_WAITED_MAX)
        put->waitedCount = (uint32_t)list.count;
    return 0;
}

/* 0, or -1: it is no put that waits (any more). */
static int readPut(ebpfMonIocWaits *ioc, const commonPart *p, uint64_t at, uint64_t now, ebpfMonWaitingPut *put)
{
    const ebpfMonBaseRelease *base = ioc->cat->base;
    uint64_t pvt = base->has.channels ? at + base->notify.chan - beforeChanPvt
                                      : at + base->notify.usrPvt + behindUserPvt;
    ebpfMonActiveRecord own;
    int32_t request = 1;

    *put = (ebpfMonWaitingPut){ .at = at, .since = now, .seenAt = now };
    if (at % sizeof(uint64_t) || !(put->chan = ebpfMonMemPtr(ioc->mem, at + base->notify.chan)) ||
        readChannel(ioc, put) || readWaitList(ioc, ebpfMonMemPtr(ioc->mem, pvt), put) ||
        (base->has.channels &&
         ebpfMonMemRead(ioc->mem, at + base->notify.chan - beforeChanRequest, &request, sizeof(request))))
        return -1;
    put->isProcess = !(request & 1); /* processRequest, processGetRequest */
    own = (ebpfMonActiveRecord){ .record = put->record };
    if (readRecords(ioc, p, &own, 1))
        return -1;
    put->time = own.time;
    readClient(ioc, ebpfMonMemPtr(ioc->mem, at + base->notify.usrPvt), put);
    return 0;
}

/* Nonzero: one record is active since before the old look, and both wait for it. */
static int hasSameWaited(ebpfMonIocWaits *ioc, const ebpfMonWaitingPut *old, const ebpfMonWaitingPut *put)
{
    for (uint32_t i = 0; i < put->waitedCount && i < EBPFMON_WAITED_MAX; i++)
        for (uint32_t k = 0; k < old->waitedCount && k < EBPFMON_WAITED_MAX; k++) {
            const ebpfMonActiveRecord *r = put->waited[i] == old->waited[k] ?
                                           ebpfMonIocWaitsFind(ioc, put->waited[i]) : NULL;

            if (r && r->isActive && !r->isUnsure && r->since <= old->seenAt)
                return 1;
        }
    return 0;
}

/* A processNotify is used again by the next put of its channel: is this the put that was seen before? Its record has
 * not processed since, or it still waits for the same record. */
static int isSamePut(ebpfMonIocWaits *ioc, const ebpfMonWaitingPut *old, const ebpfMonWaitingPut *put)
{
    return old->chan == put->chan && old->record == put->record && strcmp(old->peer, put->peer) == 0 &&
           ((!hasUnsureTime(ioc, put->record) && memcmp(&old->time, &put->time, sizeof(put->time)) == 0) ||
            hasSameWaited(ioc, old, put));
}

static void keepPut(const ebpfMonWaitingPut *old, ebpfMonWaitingPut *put)
{
    put->since = old->since;
    put->isExact = old->isExact;
    put->isTold = old->isTold;
    put->note = old->note;
    memcpy(put->process, old->process, sizeof(put->process));
    if (!put->who[0])
        memcpy(put->who, old->who, sizeof(put->who));
}

static void updatePuts(ebpfMonIocWaits *ioc, const commonPart *p, uint64_t now)
{
    size_t kept = 0;

    for (size_t i = 0; i < ioc->puts; i++) {
        ebpfMonWaitingPut put;

        if (readPut(ioc, p, ioc->put[i].at, now, &put))
            continue;
        if (isSamePut(ioc, &ioc->put[i], &put))
            keepPut(&ioc->put[i], &put);
        ioc->put[kept++] = put;
    }
    ioc->puts = kept;
}

static void addPut(ebpfMonIocWaits *ioc, const commonPart *p, uint64_t at, uint64_t now)
{
    if (!at || findPut(ioc, at) || ioc->puts >= PUTS_MAX ||
        ebpfMonArrayGrow(&ioc->put, &ioc->putRoom, ioc->puts + 1, 16, sizeof(*ioc->put)) ||
        readPut(ioc, p, at, now, &ioc->put[ioc->puts]))
        return;
    ioc->puts++;
}

/* Puts that wait until this record is free (processNotifyRecord.restartList). */
static void addQueuedPuts(ebpfMonIocWaits *ioc, const commonPart *p, const ebpfMonActiveRecord *r, uint64_t now)
{
    char bytes[ppnrSize];
    struct layoutList list;
    uint64_t at;

    if (!r->ppnr || readWaitedRecord(ioc, r->ppnr, bytes) != (long)r->record)
        return;
    memcpy(&list, bytes + ppnrRestartList, sizeof(list));
    at = list.first;
    for (int32_t n = 0; at && n < list.count && n < QUEUED_MAX; n++) {
        addPut(ioc, p, at, now);
        at = ebpfMonMemPtr(ioc->mem, at);
    }
}

/* The records for which puts wait are looked at each time, too. */
static void followWaited(ebpfMonIocWaits *ioc, const commonPart *p, uint64_t now)
{
    for (size_t i = 0; i < ioc->puts; i++)
        for (uint32_t k = 0; k < ioc->put[i].waitedCount && k < EBPFMON_WAITED_MAX; k++) {
            ebpfMonActiveRecord r = { .record = ioc->put[i].waited[k] };

            if (!ebpfMonIocWaitsFind(ioc, r.record) && readRecords(ioc, p, &r, 1) == 0)
                addActive(ioc, &r, now);
        }
}

/* --- a look ----------------------------------------------------------------------------------------------------- */

void ebpfMonIocWaitsClear(ebpfMonIocWaits *ioc)
{
    ebpfMonCatalogueRelease(ioc->cat);
    ebpfMonMemFree(ioc->mem);
    ebpfMonWaitGraphClear(&ioc->graph);
    free(ioc->active);
    free(ioc->put);
    *ioc = (ebpfMonIocWaits){ .id = 0 };
}

void ebpfMonIocWaitsSetCatalogue(ebpfMonIocWaits *ioc, ebpfMonCatalogue *cat)
{
    if (!ioc->cat || !ebpfMonCatalogueGoesOn(cat, ioc->cat))
        ioc->actives = ioc->puts = ioc->next = ioc->rounds = 0;
    ebpfMonCatalogueRelease(ioc->cat);
    ioc->cat = cat;
    ioc->graph.cat = cat;
}

void ebpfMonIocWaitsLook(ebpfMonIocWaits *ioc, uint32_t records, uint64_t now)
{
    commonPart part;

    if (!ioc->mem)
        ioc->mem = ebpfMonMemNew(ioc->pid);
    ioc->isRead = ioc->mem && ioc->cat->count && findPart(ioc->cat, &part) == 0 &&
                  updateActives(ioc, &part, now) == 0 && lookInTurn(ioc, &part, records, now) == 0;
    if (!ioc->isRead)
        return;
    ebpfMonMemFlush(ioc->mem);
    updatePuts(ioc, &part, now);
    for (size_t i = 0; i < ioc->actives; i++)
        addPut(ioc, &part, ioc->active[i].ppn, now);
    for (size_t i = 0; i < ioc->actives; i++)
        addQueuedPuts(ioc, &part, &ioc->active[i], now);
    followWaited(ioc, &part, now);
}

/* --- words ------------------------------------------------------------------------------------------------------ */

/* What completes a record: its device and the address there, or its own delay. */
static void readWhat(ebpfMonIocWaits *ioc, ebpfMonActiveRecord *r)
{
    const ebpfMonCatalogue *cat = ioc->cat;
    ebpfMonMem *mem = ioc->mem;
    uint32_t at = r->record;
    char device[EBPFMON_FIELD_TEXT], text[EBPFMON_FIELD_TEXT];

    snprintf(r->what, sizeof(r->what), "%s", cat->rtype[cat->rec[at].rtype].name);
    ebpfMonFieldTextReadNamed(mem, cat, at, "DTYP", device, sizeof(device));
    if (device[0] && strcmp(device, "Soft Channel") != 0) {
        ebpfMonTextAdd(r->what, sizeof(r->what), ", %.40s", device);
        if (ebpfMonFieldTextReadNamed(mem, cat, at, "INP", text, sizeof(text))[0])
            ebpfMonTextAdd(r->what, sizeof(r->what), ", INP %.60s", text);
        if (ebpfMonFieldTextReadNamed(mem, cat, at, "OUT", text, sizeof(text))[0])
            ebpfMonTextAdd(r->what, sizeof(r->what), ", OUT %.60s", text);
    }
    /* a motor that moves is not active */
    if (ebpfMonFieldTextReadNamed(mem, cat, at, "DMOV", text, sizeof(text))[0])
        ebpfMonTextAdd(r->what, sizeof(r->what), ", DMOV %.20s", text);
    if (strcmp(ebpfMonFieldTextReadNamed(mem, cat, at, "ODLY", text, sizeof(text)), "0") != 0 && text[0])
        ebpfMonTextAdd(r->what, sizeof(r->what), ", ODLY %.20s", text);
}

/* "CP link SDIS from C4:DIS": of a record that a thread of CP links has processed (dbCa.c). */
static void describeCpLinks(ebpfMonIocWaits *ioc, uint32_t record, const struct ebpfMonCauseEvent *cause,
                            const char *comm, char *text, size_t size)
{
    const ebpfMonRecord *r = &ioc->cat->rec[record];
    const ebpfMonRecType *type = &ioc->cat->rtype[r->rtype];
    char name[80] = "?";
    unsigned n = 0;

    for (uint32_t i = 0; i < type->fieldCount; i++) {
        const ebpfMonField *f = &ioc->cat->field[type->firstField + i];
        ebpfMonLink link;

        if (f->type != ebpfMonDbfInlink || (cause->cpLink && cause->cpLink != r->addr + f->offset) ||
            ebpfMonLinkRead(ioc->mem, ioc->cat->base, r->addr + f->offset, &link) ||
            !ebpfMonLinkIsCp(&link) || n++)
            continue;
        ebpfMonMemStr(ioc->mem, link.pvname, name, sizeof(name));
        ebpfMonTextClean(name, sizeof(name));
        snprintf(text, size, "CP link %s from %s", f->name, name);
    }
    if (n != 1)
        snprintf(text, size, n ? "one of its CP links" : "thread %s", comm);
}

void ebpfMonIocWaitsSetBegun(ebpfMonIocWaits *ioc, const struct ebpfMonCauseEvent *cause, ebpfMonActiveRecord *r)
{
    long root = ebpfMonCatalogueFindAddr(ioc->cat, cause->root);
    char comm[EBPFMON_COMM_MAX + 1], user[EBPFMON_USER_MAX + 8], host[EBPFMON_HOST_MAX + 1];

    ebpfMonTextCopyBytes(comm, sizeof(comm), cause->who.comm, EBPFMON_COMM_MAX - 1);
    ebpfMonTextCopyBytes(user, sizeof(user), cause->who.user, EBPFMON_USER_MAX - 1);
    ebpfMonTextCopyBytes(host, sizeof(host), cause->who.host, EBPFMON_HOST_MAX - 1);
    if (user[0]) {
        ebpfMonTextMarkClaim(user, sizeof(user));
        snprintf(r->begun, sizeof(r->begun), "%s@%s", user, host);
    } else if (root >= 0 && (strcmp(comm, "scanOnce") == 0 || strncmp(comm, "dbCaLink", 8) == 0)) {
        describeCpLinks(ioc, (uint32_t)root, cause, comm, r->begun, sizeof(r->begun));
    } else {
        snprintf(r->begun, sizeof(r->begun), "thread %s", comm);
    }
    if (root >= 0 && root != (long)r->record)
        ebpfMonTextAdd(r->begun, sizeof(r->begun), " in the chain of %s",
                       ebpfMonCatalogueName(ioc->cat, (uint32_t)root));
}

void ebpfMonIocWaitsDescribeRecord(ebpfMonIocWaits *ioc, ebpfMonActiveRecord *r, uint64_t now, char *text, size_t size)
{
    if (!r->what[0])
        readWhat(ioc, r);
    snprintf(text, size, "%s (%s", ebpfMonCatalogueName(ioc->cat, r->record), r->what);
    if (!r->isActive)
        ebpfMonTextAdd(text, size, ", not active");
    else if (r->isUnsure)
        ebpfMonTextAdd(text, size, ", active");
    else
        ebpfMonTextAdd(text, size, ", active for at least %.0f s", (double)(now - r->since) / 1e9);
    if (r->isActive && r->begun[0])
        ebpfMonTextAdd(text, size, ", begun by %s", r->begun);
    if (r->isActive && r->lcnt)
        ebpfMonTextAdd(text, size, ", asked %ux to process meanwhile%s", r->lcnt > MANY_TIMES ? MANY_TIMES : r->lcnt,
                       r->lcnt >= MANY_TIMES ? " or more often" : "");
    if (r->isActive)
        ebpfMonWaitGraphAddPort(&ioc->graph, r->record, text, size);
    ebpfMonTextAdd(text, size, ")");
}

void ebpfMonIocWaitsDescribe(ebpfMonIocWaits *ioc, const ebpfMonWaitingPut *put, uint64_t now, char *text, size_t size)
{
    char one[EBPFMON_WAIT_TEXT];
    uint32_t shown = put->waitedCount < 4 ? put->waitedCount : 4;

    text[0] = 0;
    if (put->isQueued)
        ebpfMonTextAdd(text, size, "%s, which another put holds", ebpfMonCatalogueName(ioc->cat, put->record));
    for (uint32_t i = 0; i < shown; i++) {
        ebpfMonActiveRecord *r = ebpfMonIocWaitsFind(ioc, put->waited[i]);

        if (r)
            ebpfMonIocWaitsDescribeRecord(ioc, r, now, one, sizeof(one));
        else
            snprintf(one, sizeof(one), "%s", ebpfMonCatalogueName(ioc->cat, put->waited[i]));
        ebpfMonTextAdd(text, size, "%s%s", text[0] ? ", " : "", one);
    }
    if (put->waitedCount > shown)
        ebpfMonTextAdd(text, size, " and %u more", put->waitedCount - shown);
    if (!text[0])
        ebpfMonTextAdd(text, size, "its completion");
}
