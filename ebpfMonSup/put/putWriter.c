/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>

#include "common/text.h"
#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"
#include "ioc/recordLinks.h"
#include "model/put.h"
#include "put/putWriter.h"
#include "put/valueText.h"

#define ONCE "queued once"

/* --- what a thread does --- */

void ebpfMonThreadJobReadScan(ebpfMonTarget *t, uint64_t precord, char *buf, size_t size)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    const ebpfMonField *f;
    uint8_t data[2];
    ebpfMonValue v = { .data = data, .len = sizeof(data), .type = ebpfMonDbfMenu, .size = 2, .count = 1 };

    buf[0] = 0;
    f = index >= 0 ? ebpfMonCatalogueFieldNamed(t->cat, t->cat->rec[index].rtype, "SCAN") : NULL;
    if (f && ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, precord + f->offset, data, sizeof(data)) == 0)
        ebpfMonValueTextFormat(t, f, precord, &v, buf, size);
}

/* Nonzero: it is a CP link, and "name" gets its PV if that can be read. */
static int readCpLink(ebpfMonTarget *t, const ebpfMonLink *link, int isPva, char *name, size_t size)
{
    char text[EBPFMON_PVA_LINK_TEXT];
    ebpfMonPvaLink pva;

    if (isPva) {
        if (!ebpfMonPvaLinkIsJson(link) ||
            ebpfMonLateReadsGetText(t->eventThread.reads, t->pid, link->value, text, sizeof(text)) ||
            ebpfMonPvaLinkParse(text, &pva) || !pva.isCp)
            return 0;
        ebpfMonTextCopy(name, size, pva.pv);
        return 1;
    }
    if (!ebpfMonLinkIsCp(link))
        return 0;
    if (ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, link->pvname, name, size) == 0)
        name[size - 1] = 0;
    ebpfMonTextClean(name, size);
    return 1;
}

long ebpfMonThreadJobReadCpLink(ebpfMonTarget *t, uint64_t precord, uint64_t at, char *name, size_t size)
{
    uint32_t index;
    ebpfMonLink link;

    name[0] = 0;
    if (!t->cat || !ebpfMonCatalogueFieldAt(t->cat, at, &index) || t->cat->rec[index].addr != precord ||
        ebpfMonLinkReadLate(t->eventThread.reads, t->pid, t->cat->base, at, &link) || link.owner != precord ||
        !readCpLink(t, &link, 0, name, size))
        return -1;
    return name[0] ? 0 : -1;
}

/* If the kernel part did not see which CP link it was: the record has CP links (of pvAccess, or of CA) or has none;
 * which of several it was is not known. "none": the text if it has none. */
static void describeCpLink(ebpfMonTarget *t, const ebpfMonThreadJob *job, int isPva, const char *none, char *buf,
                           size_t size)
{
    uint64_t precord = job->root;
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    const ebpfMonRecType *rt = index >= 0 ? &t->cat->rtype[t->cat->rec[index].rtype] : NULL;
    char name[EBPFMON_NAME_SIZE + 8] = "", other[sizeof(name)] = "";
    unsigned n = 0;

    if (job->cpLink && ebpfMonThreadJobReadCpLink(t, precord, job->cpLink, name, sizeof(name)) == 0) {
        snprintf(buf, size, "CP link from %s", name);
        return;
    }
    for (uint32_t i = 0; rt && i < rt->fieldCount; i++) {
        const ebpfMonField *f = &t->cat->field[rt->firstField + i];
        ebpfMonLink link;

        if (f->type == ebpfMonDbfInlink &&
            ebpfMonLinkReadLate(t->eventThread.reads, t->pid, t->cat->base, precord + f->offset, &link) == 0)
            n += (unsigned)readCpLink(t, &link, isPva, n ? other : name, sizeof(name));
    }
    if (n == 1)
        snprintf(buf, size, "CP link from %s", name[0] ? name : "?");
    else if (n)
        snprintf(buf, size, "one of %u CP links", n);
    else
        snprintf(buf, size, "%s", none);
}

void ebpfMonThreadJobDescribe(ebpfMonTarget *t, const ebpfMonThreadJob *job, char *buf, size_t size)
{
    const char *comm = job->comm;
    char scan[40], thread[24];

    if (strncmp(comm, "scan-", 5) == 0) {
        snprintf(buf, size, "scan %.10s second", comm + 5);
    } else if (strncmp(comm, "cb", 2) == 0) {
        ebpfMonThreadJobReadScan(t, job->root, scan, sizeof(scan));
        if (strcmp(scan, "I/O Intr") == 0 || strcmp(scan, "Event") == 0)
            snprintf(buf, size, "%s", scan);
        else
            snprintf(buf, size, "callback in %.15s", comm);
    } else if (strcmp(comm, "scanOnce") == 0) {
        /* a CP link (dbCa.c before 7.0.10), or a put that found the record busy (RPRO, dbAccess.c) */
        describeCpLink(t, job, 0, ONCE, buf, size);
    } else if (strcmp(comm, "dbCaLink") == 0) {
        describeCpLink(t, job, 0, "thread dbCaLink", buf, size);
    } else if (strncmp(comm, "PVAL", 4) == 0 || strcmp(comm, "pvxlink") == 0) { /* pvalink_channel.cpp of both QSRVs */
        snprintf(thread, sizeof(thread), "thread %.15s", comm);
        describeCpLink(t, job, 1, thread, buf, size);
    } else if (job->isMain) {
        snprintf(buf, size, "%s", t->running ? "shell" : "start-up");
    } else {
        snprintf(buf, size, "thread %.15s", comm);
    }
}

/* --- puts of links --- */

static int isOneOf(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return 1;
    return 0;
}

/* The next word of a link's text, as dbParseLink (dbStaticLib.c) takes it apart. Returns where it begins. */
static const char *findNextWord(const char *text, size_t *len)
{
    text += strspn(text, " \t\r\n");
    *len = strcspn(text, " \t\r\n");
    return text;
}

static int isWord(const char *word, size_t len, const char *name)
{
    return len == strlen(name) && strncmp(word, name, len) == 0;
}

/*
 * The record that a link with this text makes process by itself: a forward link, an input link with PP, an output link
 * with PP or to PROC; but none of CA. Below 0: none of this IOC. The text is believed whether or not the IOC takes it,
 * and if in doubt it is such a link.
 */
static long findTarget(const ebpfMonCatalogue *cat, const char *text, int fieldType)
{
    char name[EBPFMON_NAME_SIZE];
    size_t len, base;
    const char *word = findNextWord(text, &len);
    int processes = fieldType == ebpfMonDbfFwdlink;

    base = strcspn(word, ". \t\r\n");
    if (!base || base >= sizeof(name))
        return -1;
    memcpy(name, word, base);
    name[base] = 0;
    processes |= fieldType == ebpfMonDbfOutlink && isWord(word + base, len - base, ".PROC");
    for (word = findNextWord(word + len, &len); len; word = findNextWord(word + len, &len)) {
        if (isWord(word, len, "CA") || isWord(word, len, "CP") || isWord(word, len, "CPP"))
            return -1;
        processes |= isWord(word, len, "PP");
    }
    return processes ? ebpfMonCatalogueFind(cat, name) : -1;
}

/* The same of the value that is put: a text as it is sent, which put->val is not. A number makes a constant. */
static long findNewTarget(const ebpfMonCatalogue *cat, const struct ebpfMonPutEvent *ev, int fieldType)
{
    char text[EBPFMON_VAL_MAX + 1];

    if (ev->dbrType > ebpfMonDbfUchar || ev->newLen > EBPFMON_VAL_MAX)
        return -1;
    memcpy(text, (const char *)(ev + 1) + ev->oldLen, ev->newLen);
    text[ev->newLen] = 0;
    return findTarget(cat, text, fieldType);
}

/* The put may set something else than 0. */
static int isNonzero(const ebpfMonPut *put)
{
    return !put->isNumber || put->number != 0;
}

/* Nonzero: it begins a time in which the time stamp does not show each processing. findStampFlags, ioc/recordLinks.c,
 * says why of each. */
static int stopsStamps(const char *type, const char *field, const ebpfMonPut *put)
{
    static const char *const withDol[] = { "mbbo", "mbboDirect", "aao", NULL };

    if (strcmp(field, "TSE") == 0 || strcmp(field, "IVLA") == 0 ||
        (strcmp(field, "SDEL") == 0 && strcmp(type, "histogram") == 0) ||
        (strcmp(field, "UDF") == 0 && strncmp(type, "mbbo", 4) == 0))
        return isNonzero(put);
    if (strcmp(field, "TSEL") == 0 || (strcmp(field, "DOL") == 0 && isOneOf(type, withDol)))
        return put->val[0] != 0;
    return strcmp(field, "OMSL") == 0 && isOneOf(type, withDol);
}

/*
 * Nonzero: after a put to this field, which is no link, the record may have to be counted in another way
 * (ioc/recordLinks.c), or it writes to another PV. A put to an undefined mbbo or mbboDirect may define it; one to
 * another field than VAL processes it without a time stamp, and if nothing else makes it process, nobody counts that.
 */
static int changesCounting(ebpfMonTarget *t, uint64_t precord, const ebpfMonField *f)
{
    static const char *const fields[] = { "TSE", "TSEL", "OMSL", "UDF", "SDEL", "DTYP", "SSCN", "SCAN", "IVLA", NULL };
    long index;

    if (isOneOf(f->name, fields) || ebpfMonRecordLinksIsName(t->cat, f))
        return 1;
    index = ebpfMonCatalogueFindAddr(t->cat, precord);
    if (index < 0 || !(t->cat->rec[index].flags & EBPFMON_REC_UNDEFINED))
        return 0;
    if (strcmp(f->name, "VAL") != 0)
        ebpfMonTargetNoteUnseen(t, (uint32_t)index, EBPFMON_UNSEEN_ALONE);
    return 1;
}

void ebpfMonLinkPutDecode(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const ebpfMonField *f,
                          const ebpfMonPut *put, ebpfMonLinkPut *change)
{
    int isLink = ev->putKind == EBPFMON_PUT_LINK;
    long index;

    memset(change, 0, sizeof(*change));
    if (!isLink && (ev->putKind != EBPFMON_PUT_VALUE || !f || !changesCounting(t, ev->precord, f)))
        return;
    change->precord = ev->precord;
    change->pfldDes = ev->pfldDes;
    change->isLink = isLink;
    if (!f)
        return;
    if (isLink && (index = findNewTarget(t->cat, ev, f->type)) >= 0)
        ebpfMonTargetNoteUnseen(t, (uint32_t)index, EBPFMON_UNSEEN_REACHED);
    if (stopsStamps(t->cat->rtype[f->rtype].name, f->name, put) &&
        (index = ebpfMonCatalogueFindAddr(t->cat, ev->precord)) >= 0)
        ebpfMonTargetNoteUnseen(t, (uint32_t)index, EBPFMON_UNSEEN_REACHED);
}

/* --- links that wrote lately --- */

#define LINKS     16            /* power of two; each is a read of some 1 us for each put that follows */
#define RECENT_NS 1500000000ull /* the records are read for 1.1 s (requests.c) */
#define NAMED_NS  10000000000ull /* … and later, if the follower is late: then the writer is not named for a while */
#define IOCS      8

typedef struct {
    uint32_t         iocId; /* 0: none */
    ebpfMonLinkOwner link;
    uint64_t         at;
} recentLink;

struct ebpfMonRecentLinks {
    unsigned   next; /* the oldest */
    uint64_t   newest;
    recentLink link[LINKS];
    struct {
        uint32_t iocId;
        uint64_t at;
    } name[IOCS];        /* the last name that was put in these IOCs (ebpfMonRecordLinksIsName) */
    uint64_t otherName;  /* … in all others */
};

ebpfMonRecentLinks *ebpfMonRecentLinksNew(void)
{
    return calloc(1, sizeof(ebpfMonRecentLinks));
}

void ebpfMonRecentLinksFree(ebpfMonRecentLinks *recent)
{
    free(recent);
}

static int isSame(const recentLink *r, uint32_t iocId, ebpfMonLinkOwner link)
{
    return r->iocId == iocId && r->link.rec == link.rec && r->link.field == link.field;
}

void ebpfMonRecentLinksAdd(ebpfMonRecentLinks *recent, uint32_t iocId, ebpfMonLinkOwner link, uint64_t at)
{
    recent->newest = at;
    for (unsigned i = 0; i < LINKS; i++)
        if (isSame(&recent->link[i], iocId, link)) {
            recent->link[i].at = at;
            return;
        }
    recent->link[recent->next++ % LINKS] = (recentLink){ .iocId = iocId, .link = link, .at = at };
}

/* The name of a PV to which a record writes was put. */
static void addName(ebpfMonRecentLinks *recent, uint32_t iocId, uint64_t at)
{
    unsigned to = 0;

    for (unsigned i = 0; i < IOCS; i++) {
        if (recent->name[i].iocId == iocId) {
            recent->name[i].at = at;
            return;
        }
        if (recent->name[i].at < recent->name[to].at)
            to = i;
    }
    if (recent->name[to].at > recent->otherName)
        recent->otherName = recent->name[to].at;
    recent->name[to].iocId = iocId;
    recent->name[to].at = at;
}

/* Nonzero: one was put so shortly before "at" that the table may not have it yet. */
static int hasName(const ebpfMonRecentLinks *recent, uint32_t iocId, uint64_t at)
{
    uint64_t last = recent->otherName;

    for (unsigned i = 0; i < IOCS; i++)
        if (recent->name[i].iocId == iocId)
            last = recent->name[i].at;
    return last && at < last + NAMED_NS;
}

/* Nonzero: the IOC writes through this link by that DBADDR now. */
static int leadsTo(ebpfMonTarget *t, ebpfMonLinkOwner owner, uint64_t addr)
{
    uint64_t at = t->cat->rec[owner.rec].addr + t->cat->field[owner.field].offset;
    ebpfMonLink link;

    return ebpfMonLinkReadLate(t->eventThread.reads, t->pid, t->cat->base, at, &link) == 0 &&
           link.type == EBPFMON_LINK_DB && link.pvt &&
           (link.pvt == addr || link.pvt + offsetof(struct layoutDbChannel, addr) == addr);
}

int ebpfMonRecentLinksFind(ebpfMonRecentLinks *recent, ebpfMonTarget *t, uint64_t addr, uint64_t at,
                           ebpfMonLinkOwner *owner)
{
    int inTable;

    if (!t->cat || !addr)
        return -1;
    inTable = ebpfMonLinkTableFind(t->cat->links, addr, owner) == 0 && owner->rec < t->cat->count;
    if (at > recent->newest + RECENT_NS)
        return inTable ? 0 : -1;
    for (unsigned i = 0; i < LINKS; i++) {
        const recentLink *r = &recent->link[i];

        if (r->iocId != t->iocId || at > r->at + RECENT_NS || r->link.rec >= t->cat->count)
            continue;
        if (leadsTo(t, r->link, addr)) {
            *owner = r->link;
            return 0;
        }
        if (inTable && isSame(r, t->iocId, *owner))
            inTable = 0; /* it had this address before */
    }
    return inTable ? 0 : -1;
}

/* --- the writer of a put --- */

#define NAMES 16 /* records that may have made a put; if there are more, none is named */
#define BUSY  16

/* A put that found its record busy: dbPutField (dbAccess.c) sets RPRO, and when the record has completed, it is queued
 * once (recGblFwdLink, recGbl.c). Others may queue it, too. */
typedef struct {
    uint32_t iocId; /* 0: none */
    uint64_t precord, begin; /* begin: of the chain that was queued; 0: not seen yet */
    char     who[96];
} busyPut;

struct ebpfMonPutWriters {
    ebpfMonTargets          *targets;    /* these four are the caller's */
    ebpfMonPutClients       *clients;
    ebpfMonLinkWrites       *linkWrites;
    const ebpfMonThreadPuts *threadPuts;
    ebpfMonRecentLinks      *recentLinks;
    busyPut                  busy[BUSY];
    unsigned                 nextBusy;
};

ebpfMonPutWriters *ebpfMonPutWritersNew(ebpfMonTargets *targets, ebpfMonPutClients *clients,
                                        ebpfMonLinkWrites *linkWrites, const ebpfMonThreadPuts *threadPuts)
{
    ebpfMonPutWriters *writers = calloc(1, sizeof(*writers));

    if (!writers)
        return NULL;
    writers->recentLinks = ebpfMonRecentLinksNew();
    if (!writers->recentLinks) {
        free(writers);
        return NULL;
    }
    writers->targets = targets;
    writers->clients = clients;
    writers->linkWrites = linkWrites;
    writers->threadPuts = threadPuts;
    return writers;
}

void ebpfMonPutWritersFree(ebpfMonPutWriters *writers)
{
    if (!writers)
        return;
    ebpfMonRecentLinksFree(writers->recentLinks);
    free(writers);
}

void ebpfMonPutWritersLookUp(ebpfMonPutWriters *writers, const struct ebpfMonHead *head, const struct ebpfMonWho *who,
                             const struct ebpfMonCauseEvent *cause, ebpfMonPutEventClients *clients)
{
    clients->hasClient = ebpfMonPutClientsFindByThread(writers->clients, head, who, &clients->client);
    clients->hasCauseClient = cause && ebpfMonPutClientsFindByThread(writers->clients, head, &cause->who,
                                                                     &clients->causeClient);
}

static const char *findRecordName(ebpfMonTarget *t, uint64_t precord)
{
    long index = t->cat && precord ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;

    return index >= 0 ? ebpfMonCatalogueName(t->cat, (uint32_t)index) : "";
}

static int isMainThread(const struct ebpfMonHead *head)
{
    return head->tid == head->tgid;
}

/* A client that is an IOC which we watch, perhaps the same one: which of its records wrote? Of another IOC only the
 * packet tells for certain: the message may have waited for the thread. */
static void findCaLink(ebpfMonPutWriters *writers, const struct ebpfMonPutEvent *ev, uint32_t pid, ebpfMonPut *put)
{
    char channel[EBPFMON_CHANNEL_MAX];

    ebpfMonTextCopyBytes(channel, sizeof(channel), ev->channel, EBPFMON_CHANNEL_MAX - 1);
    ebpfMonLinkWritesSetWriter(writers->linkWrites, pid, channel, ev->begin ? ev->begin : ev->head.ktime, put);
    put->isLinkUnsure |= pid != ev->head.tgid;
}

/* Nonzero: the link leads to this PV now. */
static int isPvaLinkTo(ebpfMonTarget *t, ebpfMonLinkOwner owner, ebpfMonLateReads *reads, const char *pv)
{
    uint64_t at = t->cat->rec[owner.rec].addr + t->cat->field[owner.field].offset;
    char text[EBPFMON_PVA_LINK_TEXT];
    ebpfMonPvaLink pva;
    ebpfMonLink link;

    return ebpfMonLinkReadLate(reads, t->pid, t->cat->base, at, &link) == 0 && ebpfMonPvaLinkIsJson(&link) &&
           ebpfMonLateReadsGetText(reads, t->pid, link.value, text, sizeof(text)) == 0 &&
           ebpfMonPvaLinkParse(text, &pva) == 0 && strcmp(pva.pv, pv) == 0;
}

/* The same over pvAccess. No probe sees such a link write: it is known by its PV, if no other link of the IOC has the
 * same. */
static void findPvaLink(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, uint32_t pid,
                        ebpfMonPut *put)
{
    ebpfMonTarget *from = ebpfMonTargetsFindByPid(writers->targets, (pid_t)pid);
    char channel[EBPFMON_CHANNEL_MAX];
    ebpfMonLinkOwner owner;

    ebpfMonTextCopyBytes(channel, sizeof(channel), ev->channel, EBPFMON_CHANNEL_MAX - 1);
    if (!from || !from->cat ||
        ebpfMonLinkTableFind(from->cat->links, ebpfMonPvaLinkKey(channel[0] ? channel : put->pv), &owner))
        return;
    if (owner.rec == EBPFMON_SEVERAL_LINKS) {
        snprintf(put->cause, sizeof(put->cause), "one of several PVA links of %s", from->name);
    } else if (owner.rec < from->cat->count &&
               isPvaLinkTo(from, owner, t->eventThread.reads, channel[0] ? channel : put->pv)) {
        snprintf(put->link, sizeof(put->link), "%s.%.6s", ebpfMonCatalogueName(from->cat, owner.rec),
                 from->cat->field[owner.field].name);
        snprintf(put->linkIoc, sizeof(put->linkIoc), "%s", from->name);
    }
}

static void setLink(const ebpfMonTarget *t, ebpfMonLinkOwner owner, ebpfMonPut *put)
{
    put->through = ebpfMonByLink;
    snprintf(put->link, sizeof(put->link), "%s.%.6s", ebpfMonCatalogueName(t->cat, owner.rec),
             t->cat->field[owner.field].name);
}

/* A database link writes by a DBADDR of its own (dbDbPutValue, dbDbLink.c), so its address names the link. Nonzero: it
 * was a link. */
static int findDatabaseLink(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev,
                            ebpfMonPut *put)
{
    ebpfMonLinkOwner owner;

    if (ebpfMonRecentLinksFind(writers->recentLinks, t, ev->addr, ev->head.ktime, &owner))
        return 0;
    setLink(t, owner, put);
    return 1;
}

/* The name with which the channel of a put was made. The DBADDR of a put without a channel has something else before
 * it. 0, or -1: it cannot be read (yet). */
static int readChannelName(ebpfMonTarget *t, uint64_t addr, char name[EBPFMON_NAME_SIZE])
{
    uint64_t at = addr - offsetof(struct layoutDbChannel, addr), text;

    return addr && ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, at, &text, sizeof(text)) == 0 ?
           ebpfMonLateReadsGetText(t->eventThread.reads, t->pid, text, name, EBPFMON_NAME_SIZE) : -1;
}

/* 1: the text still names this field, and is this channel's name (NULL: any); 0: it is not; -1: it cannot be read
 * (yet). */
static int isNaming(ebpfMonTarget *t, ebpfMonLinkOwner owner, uint64_t field, const char *channel)
{
    char text[EBPFMON_NAME_SIZE];

    if (owner.rec >= t->cat->count ||
        ebpfMonLateReadsGetText(t->eventThread.reads, t->pid,
                                t->cat->rec[owner.rec].addr + t->cat->field[owner.field].offset, text, sizeof(text)))
        return -1;
    return ebpfMonRecordLinksFindNamed(t->cat, text) == field && (!channel || strcmp(channel, text) == 0);
}

/* The thread of recDynLink.c (modules calc and sscan) makes the puts of all swait and sscan records, as a CA client of
 * its own IOC. Which record told it to is not seen, only which may have: those whose texts name this field.
 * A routine of the chain that such a put began is no such client. Below level chains, where no chain is seen, it has
 * another channel than one with the record's text as its name, or none. */
static void findNamingRecord(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev,
                             ebpfMonPut *put)
{
    const ebpfMonField *f = t->cat ? ebpfMonCatalogueField(t->cat, ev->pfldDes) : NULL;
    uint64_t field = f ? ev->precord + f->offset : 0;
    ebpfMonLinkOwner owner[NAMES];
    char names[sizeof(put->cause)] = "", channel[EBPFMON_NAME_SIZE];
    uint32_t found, n = 0;
    int isUnknown = 0;
    size_t len = 0;

    if (!f || !t->indexed || (ev->root && ev->root != ev->precord) ||
        hasName(writers->recentLinks, t->iocId, ev->head.ktime) ||
        (!ev->root && readChannelName(t, ev->addr, channel)))
        return;
    found = ebpfMonLinkTableFindNames(t->cat->links, field, owner, NAMES);
    if (found > NAMES)
        return;
    for (uint32_t i = 0; i < found; i++) {
        int named = isNaming(t, owner[i], field, ev->root ? NULL : channel);

        isUnknown |= named < 0;
        if (named <= 0)
            continue;
        owner[n++] = owner[i];
        if (len < sizeof(names))
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s.%.6s", n > 1 ? ", " : "",
                                    ebpfMonCatalogueName(t->cat, owner[i].rec), t->cat->field[owner[i].field].name);
    }
    if (isUnknown)
        return;
    if (n == 1) {
        setLink(t, owner[0], put);
        put->through = ebpfMonByCaLink;
        ebpfMonTextSet(put->linkIoc, sizeof(put->linkIoc), t->name);
    } else if (n) {
        snprintf(put->cause, sizeof(put->cause), "one of %u links: %.170s", n, names);
    }
}

void ebpfMonPutWritersAddLink(ebpfMonPutWriters *writers, ebpfMonTarget *t, const ebpfMonLinkPut *change, uint64_t at)
{
    const ebpfMonField *f = t->cat ? ebpfMonCatalogueField(t->cat, change->pfldDes) : NULL;
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, change->precord) : -1;

    if (f && ebpfMonRecordLinksIsName(t->cat, f))
        addName(writers->recentLinks, t->iocId, at);
    if (change->isLink && f && f->type == ebpfMonDbfOutlink && index >= 0)
        ebpfMonRecentLinksAdd(writers->recentLinks, t->iocId,
                              (ebpfMonLinkOwner){ .rec = (uint32_t)index, .field = (uint32_t)(f - t->cat->field) },
                              at);
}

void ebpfMonPutWritersFindLateLink(ebpfMonTarget *t, uint64_t addr, ebpfMonPut *put)
{
    int isStartUp = put->through == ebpfMonByInit;
    ebpfMonLinkOwner owner;

    if (!t->cat || !addr || ebpfMonLinkTableFind(t->cat->links, addr, &owner) || owner.rec >= t->cat->count)
        return;
    setLink(t, owner, put);
    if (put->chain.iocId) /* it was taken for a put that begins a chain */
        put->source = put->chain;
    put->chain.iocId = 0;
    if (isStartUp)
        snprintf(put->cause, sizeof(put->cause), "%s", ebpfMonThroughName(ebpfMonByInit));
    else
        ebpfMonThreadJobDescribe(t, &(ebpfMonThreadJob){ .comm = put->thread }, put->cause, sizeof(put->cause));
}

/* The same if "job" has the name of an event, perhaps without a terminator. */
static void describeEventJob(ebpfMonTarget *t, ebpfMonThreadJob job, char *buf, size_t size)
{
    char name[EBPFMON_COMM_MAX];

    ebpfMonTextCopyBytes(name, sizeof(name), job.comm, EBPFMON_COMM_MAX - 1);
    job.comm = name;
    ebpfMonThreadJobDescribe(t, &job, buf, size);
}

/* The root by which the job of this thread is described; 0: a CA link began the chain with a put (putWriter.h). */
static uint64_t findJobRoot(const ebpfMonPutWriters *writers, const ebpfMonTarget *t, const char *comm, uint32_t tid,
                            uint64_t root, uint64_t begin)
{
    return strncmp(comm, "dbCaLink", 9) == 0 &&
                   ebpfMonThreadPutsHaveBegun(writers->threadPuts, t->iocId, tid, root, begin) ? 0 : root;
}

/* Called for each put, perhaps several times. What a link of a chain makes busy is not known. */
static void noteBusy(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev,
                     const ebpfMonPut *put)
{
    long index = t->cat && t->recState ? ebpfMonCatalogueFindAddr(t->cat, ev->precord) : -1;
    const ebpfMonField *f;
    busyPut *b = NULL;
    uint8_t again;

    if (index < 0 || !t->recState[index].pending ||
        (put->through != ebpfMonByCa && put->through != ebpfMonByPva && put->through != ebpfMonByShell) ||
        !(f = ebpfMonCatalogueFieldNamed(t->cat, t->cat->rec[index].rtype, "RPRO")) ||
        ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, ev->precord + f->offset, &again, 1) || !again)
        return;
    for (unsigned i = 0; i < BUSY && !b; i++)
        if (writers->busy[i].iocId == t->iocId && writers->busy[i].precord == ev->precord)
            b = &writers->busy[i];
    if (!b)
        b = &writers->busy[writers->nextBusy++ % BUSY];
    *b = (busyPut){ .iocId = t->iocId, .precord = ev->precord, .who = "shell" };
    if (put->through != ebpfMonByShell)
        ebpfMonWriterTextFormatCause(put->user, put->host, put->isUnsure, b->who, sizeof(b->who));
}

/* Adds to the cause of a chain that was queued once who may have caused it. */
static void addBusy(ebpfMonPutWriters *writers, const ebpfMonTarget *t, uint64_t root, uint64_t begin, char *cause,
                    size_t size)
{
    for (busyPut *b = writers->busy; b < writers->busy + BUSY; b++) {
        if (b->iocId != t->iocId || b->precord != root || (b->begin && b->begin != begin) ||
            strncmp(cause, ONCE, strlen(ONCE)) != 0)
            continue;
        b->begin = begin;
        ebpfMonTextAdd(cause, size, ", perhaps as the %s found it busy", b->who);
    }
}

/* What started the chain in which the put is made: the job of the thread, and if another chain handed that chain over,
 * what started the other one. */
static void setChainCause(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, uint64_t root,
                          ebpfMonPut *put)
{
    const struct ebpfMonSourceChain *source = &ev->source;
    const char *sourceRoot = source->begin ? findRecordName(t, source->root) : "";
    ebpfMonThreadJob present = { put->thread, isMainThread(&ev->head),
                                 findJobRoot(writers, t, put->thread, ev->head.tid, root, ev->begin), ev->cpLink };
    char sourceCause[96], job[40];

    ebpfMonThreadJobDescribe(t, &present, put->cause, sizeof(put->cause));
    if (!sourceRoot[0]) {
        addBusy(writers, t, root, ev->begin, put->cause, sizeof(put->cause));
        return;
    }
    snprintf(sourceCause, sizeof(sourceCause), "%s",
             ebpfMonThreadPutsFindWriter(writers->threadPuts, t->iocId, source));
    if (!sourceCause[0])
        describeEventJob(t, (ebpfMonThreadJob){ source->comm, (int)source->isMain, source->root, 0 }, sourceCause,
                         sizeof(sourceCause));
    snprintf(job, sizeof(job), "%.39s", put->cause);
    snprintf(put->cause, sizeof(put->cause), "%s, chain of %s, %s", job, sourceRoot, sourceCause);
    addBusy(writers, t, root, ev->begin, put->cause, sizeof(put->cause));
}

/* The put is made while a chain completes an asynchronous record: its cause is the one that began the record.
 * "root": of the chain in which the put is made. */
static void setAsyncCause(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonCauseEvent *cause,
                          const ebpfMonPutEventClients *clients, uint64_t root, ebpfMonPut *put)
{
    uint64_t first = cause->root ? cause->root : root;

    if (clients->hasCauseClient) {
        ebpfMonPutClientSet(&clients->causeClient, put);
        ebpfMonWriterTextFormatCause(put->user, put->host, put->isUnsure, put->cause, sizeof(put->cause));
    } else {
        int isPut = strncmp(cause->who.comm, "dbCaLink", 9) == 0 && cause->putRecord == first; /* as findJobRoot */

        describeEventJob(t, (ebpfMonThreadJob){ cause->who.comm, (int)cause->byMain, isPut ? 0 : first, cause->cpLink },
                         put->cause, sizeof(put->cause));
        addBusy(writers, t, first, cause->begin, put->cause, sizeof(put->cause));
    }
    ebpfMonTextSet(put->root, sizeof(put->root), findRecordName(t, first));
}

/* The way by which the put came. "root": of the chain in which it was made; 0: not known. Nonzero: the cause is known
 * with it. */
static int setOrigin(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, uint64_t root,
                     int byClient, ebpfMonPut *put)
{
    int hasShell;

    if (findDatabaseLink(writers, t, ev, put))
        return 0;
    if (byClient && root && root != ev->precord) { /* a routine, or a driver, of the chain that it began */
        put->through = ebpfMonByThread;
        return 0;
    }
    if (byClient) {
        put->through = ev->who.isCA ? ebpfMonByCa : ebpfMonByPva;
        if (!put->peerPid)
            return 1;
        if (ev->who.isCA)
            findCaLink(writers, ev, put->peerPid, put);
        else
            findPvaLink(writers, t, ev, put->peerPid, put);
        return 1;
    }
    if (!t->running && isMainThread(&ev->head)) {
        put->through = ebpfMonByInit;
        return 0;
    }
    /* the main thread of an IOC runs its shell, unless it is that of a script interpreter */
    hasShell = isMainThread(&ev->head) && strncmp(ev->who.comm, "python", 6) != 0;
    put->through = hasShell ? ebpfMonByShell : ebpfMonByThread;
    if (strncmp(put->thread, "dbCaLink", 8) == 0) /* dbCa.c: a CA link to a record of its own IOC */
        findCaLink(writers, ev, (uint32_t)t->pid, put);
    else if (strcmp(put->thread, "recDynOut") == 0)
        findNamingRecord(writers, t, ev, put);
    return put->through == ebpfMonByCaLink;
}

/* The chain that the put began, or the one that made it. */
static void setChains(const ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const struct ebpfMonCauseEvent *cause,
                      ebpfMonPut *put)
{
    ebpfMonChainId present = { .iocId = t->iocId, .tid = ev->head.tid, .begin = ev->begin };

    if (ev->begin && put->through != ebpfMonByLink && ev->root == ev->precord) {
        put->chain = present;
        cause = NULL;
    } else if (ev->begin) {
        put->source = present;
    }
    if (cause && cause->begin)
        put->source = (ebpfMonChainId){ .iocId = t->iocId, .tid = cause->sourceTid, .begin = cause->begin };
    else if (ev->source.begin && put->through != ebpfMonByCa && put->through != ebpfMonByPva)
        put->source = (ebpfMonChainId){ .iocId = t->iocId, .tid = ev->source.tid, .begin = ev->source.begin };
}

/* Writer, way and cause. */
static void findWriterOf(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev,
                         const struct ebpfMonCauseEvent *cause, const ebpfMonPutEventClients *clients,
                         ebpfMonPut *put)
{
    uint64_t root = ev->root;

    if (clients->hasClient)
        ebpfMonPutClientSet(&clients->client, put);
    ebpfMonTextCopyBytes(put->thread, sizeof(put->thread), ev->who.comm, EBPFMON_COMM_MAX - 1);
    if (!root && clients->hasClient) /* below level chains */
        root = ebpfMonThreadPutsFindOwner(writers->threadPuts, ev);
    if (setOrigin(writers, t, ev, root, clients->hasClient, put))
        return;
    if (put->through != ebpfMonByLink && root == ev->precord) {
        /* The chain began with this put: it took the lock itself. The record may be busy with an earlier cause; that
         * made no put of this thread. */
        root = 0;
        cause = NULL;
    }
    if (cause) {
        setAsyncCause(writers, t, cause, clients, root, put);
        return;
    }
    ebpfMonTextSet(put->root, sizeof(put->root), findRecordName(t, root));
    if (clients->hasClient)
        ebpfMonWriterTextFormatCause(put->user, put->host, put->isUnsure, put->cause, sizeof(put->cause));
    else if (put->root[0] || put->through == ebpfMonByLink)
        setChainCause(writers, t, ev, root, put);
}

void ebpfMonPutWritersFind(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev,
                           const struct ebpfMonCauseEvent *cause, const ebpfMonPutEventClients *clients,
                           ebpfMonPut *put)
{
    findWriterOf(writers, t, ev, cause, clients, put);
    setChains(t, ev, cause, put);
    noteBusy(writers, t, ev, put);
}

int ebpfMonPutWritersFindLinkWrite(const ebpfMonPutWriters *writers, ebpfMonTarget *t,
                                   const struct ebpfMonCauseEvent *ev, const ebpfMonPutEventClients *clients,
                                   ebpfMonLinkWrite *write)
{
    uint32_t index;
    const ebpfMonField *f = t->cat ? ebpfMonCatalogueFieldAt(t->cat, ev->link, &index) : NULL;

    memset(write, 0, sizeof(*write));
    if (!f)
        return 0;
    write->pid = (uint32_t)t->pid;
    write->at = ev->head.ktime;
    write->step = (ebpfMonChainId){ .iocId = ev->begin ? t->iocId : 0, .tid = ev->head.tid, .begin = ev->begin };
    write->chain = write->step;
    if (ev->sourceBegin)
        write->chain = (ebpfMonChainId){ .iocId = t->iocId, .tid = ev->sourceTid, .begin = ev->sourceBegin };
    ebpfMonTextCopyBytes(write->channel, sizeof(write->channel), ev->name, EBPFMON_CHANNEL_MAX - 1);
    snprintf(write->link, sizeof(write->link), "%s.%.6s", ebpfMonCatalogueName(t->cat, index), f->name);
    snprintf(write->ioc, sizeof(write->ioc), "%s", t->name);
    snprintf(write->root, sizeof(write->root), "%s", findRecordName(t, ev->root));
    if (clients->hasClient)
        ebpfMonWriterTextFormatCause(clients->client.user, clients->client.host, clients->client.isUnsure,
                                     write->cause, sizeof(write->cause));
    else
        describeEventJob(t, (ebpfMonThreadJob){
            .comm = ev->who.comm, .isMain = (int)ev->byMain, .cpLink = ev->cpLink,
            .root = ev->sourceBegin ? ev->root
                                    : findJobRoot(writers, t, ev->who.comm, ev->head.tid, ev->root, ev->begin),
        }, write->cause, sizeof(write->cause));
    return 1;
}
