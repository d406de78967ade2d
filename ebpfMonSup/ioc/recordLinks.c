/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"
#include "ioc/recordLinks.h"

/* --- scan lists --- */

#define LISTED_MAX 16 /* records in lists that are looked at */
#define PERIOD_ERROR 0.001 /* the period of the caller is from the name of a thread: six digits */

/* Nonzero: the element belongs to the record, lies between its neighbours, and in a list. */
static int isElementOf(ebpfMonMem *mem, uint64_t at, uint64_t precord)
{
    struct layoutScanElement element, next;
    struct layoutScanList list;

    if (ebpfMonMemRead(mem, at, &element, sizeof(element)) || element.precord != precord ||
        ebpfMonMemRead(mem, element.pscan_list, &list, sizeof(list)) || !list.list.first || list.list.count <= 0)
        return 0;
    if (!element.node.prev && list.list.first != at)
        return 0;
    if (!element.node.next)
        return list.list.last == at;
    return ebpfMonMemRead(mem, element.node.next, &next, sizeof(next)) == 0 && next.node.prev == at &&
           next.pscan_list == element.pscan_list;
}

int ebpfMonScanListsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat)
{
    unsigned found = 0;

    for (uint32_t i = 0; cat->common.spvt && i < cat->count && found < LISTED_MAX; i++) {
        uint64_t element = 0, list = 0;

        if (ebpfMonMemRead(mem, cat->rec[i].addr + cat->common.spvt, &element, sizeof(element)) || !element ||
            ebpfMonMemRead(mem, element + offsetof(struct layoutScanElement, pscan_list), &list, sizeof(list)) || !list)
            continue; /* it was in a list, and is in none now */
        if (!isElementOf(mem, element, cat->rec[i].addr))
            return 0;
        found++;
    }
    return found > 0;
}

uint64_t ebpfMonScanListFind(pid_t pid, uint64_t precord, uint16_t spvt, double period)
{
    struct layoutScanElement element;
    struct layoutPeriodicList list;
    uint64_t at;

    if (!precord || !spvt || ebpfMonMemReadNow(pid, precord + spvt, &at, sizeof(at)) || !at ||
        ebpfMonMemReadNow(pid, at, &element, sizeof(element)) || element.precord != precord || !element.pscan_list ||
        ebpfMonMemReadNow(pid, element.pscan_list, &list, sizeof(list)))
        return 0;
    return list.period > (1 - PERIOD_ERROR) * period && list.period < (1 + PERIOD_ERROR) * period ?
           element.pscan_list : 0;
}

int ebpfMonScanListCount(pid_t pid, uint64_t at)
{
    struct layoutPeriodicList list;

    if (ebpfMonMemReadNow(pid, at, &list, sizeof(list)))
        return -1;
    return list.scanCtl == LAYOUT_SCANCTL_RUN && list.list.list.count > 0 ? list.list.list.count : 0;
}

/* --- lock sets --- */

#define RECORDS_MAX 32 /* records that are looked at, spread over all */

/* 0, or -1: its lock record has another layout. */
static int readLockRecord(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t i, struct layoutLockRecord *lock)
{
    uint64_t at = ebpfMonMemPtr(mem, cat->rec[i].addr + cat->common.lset);

    return at && !ebpfMonMemRead(mem, at, lock, sizeof(*lock)) && lock->precord == cat->rec[i].addr ? 0 : -1;
}

int ebpfMonLockSetsAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat)
{
    uint32_t step = cat->count / RECORDS_MAX + 1;
    struct layoutLockRecord lock;

    for (uint32_t i = 0; i < cat->count; i += step)
        if (readLockRecord(mem, cat, i, &lock))
            return 0;
    return 1;
}

int ebpfMonLockSetsHasBoth(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t a, uint32_t b)
{
    struct layoutLockRecord la, lb;

    return !readLockRecord(mem, cat, a, &la) && !readLockRecord(mem, cat, b, &lb) && la.plockSet == lb.plockSet;
}

/* --- links --- */

#define MENU_OMSL_CLOSED_LOOP 1 /* menuOmsl.dbd */
#define MENU_SCAN_PASSIVE     0 /* menuScan.dbd */
#define MENU_SCAN_IO_INTR     2
#define NO_SCAN               65535 /* the default of SSCN */
#define LINK_NAME_SIZE        256

/* Members of ebpfMonRecord that are read again. */
typedef struct {
    uint32_t *to, toCount, fwd;
    uint8_t flags, dev;
} oneRecord;

#define AGAIN_MAX 16 /* times that a record with an odd link is read once more, for all records together */

struct ebpfMonRecordLinks {
    uint32_t  index;  /* of the only record, or EBPFMON_ALL_RECORDS */
    uint32_t  first, count;
    oneRecord *rec;   /* of records first … first + count - 1 */
    ebpfMonLinkTable *table;
    unsigned  again;  /* records that were read once more */
    uint32_t  odd;    /* links that are like none of a known release */
};

/* A link of the device support "Async Soft Channel", which calls dbProcessNotify() for a record. 1: the record is in
 * the same lock set, so it processes at once; *to is its index. 0: it processes in another chain, or the link is none.
 * */
static int readNotifyLink(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec,
                          const ebpfMonLink *link, uint32_t *to)
{
    char name[LINK_NAME_SIZE];
    long target;

    if (ebpfMonMemStr(mem, link->pvname, name, sizeof(name)))
        return 0;
    name[strcspn(name, ". ")] = 0;
    target = ebpfMonCatalogueFind(cat, name);
    if (target < 0 || !ebpfMonLockSetsHasBoth(mem, cat, (uint32_t)(rec - cat->rec), (uint32_t)target))
        return 0;
    *to = (uint32_t)target;
    return 1;
}

int ebpfMonRecordLinksIsName(const ebpfMonCatalogue *cat, const ebpfMonField *f)
{
    const char *type = cat->rtype[f->rtype].name, *name = f->name;

    if (f->type != ebpfMonDbfString)
        return 0;
    if (strcmp(type, "swait") == 0)
        return strcmp(name, "OUTN") == 0;
    if (strcmp(type, "sscan") == 0) /* P1PV … P4PV, T1PV …, A1PV, BSPV, ASPV; those that it reads are RnPV, DnnPV */
        return strcmp(name, "BSPV") == 0 || strcmp(name, "ASPV") == 0 ||
               (strchr("PTA", name[0]) && name[1] >= '1' && name[1] <= '9' && strcmp(name + 2, "PV") == 0);
    /* older ones of the same library: which of their texts are for outputs is not known */
    return strcmp(type, "wait") == 0 || strcmp(type, "scan") == 0;
}

uint64_t ebpfMonRecordLinksFindNamed(const ebpfMonCatalogue *cat, const char *text)
{
    char name[LINK_NAME_SIZE];
    size_t n = strcspn(text, "."), len = 0;
    const ebpfMonField *f;
    long index;

    if (!n || n >= sizeof(name))
        return 0;
    memcpy(name, text, n);
    name[n] = 0;
    index = ebpfMonCatalogueFind(cat, name);
    if (index < 0)
        return 0;
    for (text += n + (text[n] == '.'); isalnum((unsigned char)text[len]) || text[len] == '_'; len++)
        ;
    snprintf(name, sizeof(name), "%.*s", len ? (int)len : 3, len ? text : "VAL");
    f = ebpfMonCatalogueFieldNamed(cat, cat->rec[index].rtype, name);
    return f ? cat->rec[index].addr + f->offset : 0;
}

static void readNames(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec, ebpfMonLinkTable *table)
{
    const ebpfMonRecType *rt = &cat->rtype[rec->rtype];
    char text[LINK_NAME_SIZE];

    for (uint32_t i = rt->firstField; i < rt->firstField + rt->fieldCount; i++) {
        const ebpfMonField *f = &cat->field[i];
        size_t n = f->size < sizeof(text) ? f->size : sizeof(text);
        uint64_t named;

        if (!ebpfMonRecordLinksIsName(cat, f) || !n || ebpfMonMemRead(mem, rec->addr + f->offset, text, n))
            continue;
        text[n - 1] = 0;
        named = ebpfMonRecordLinksFindNamed(cat, text);
        if (named)
            ebpfMonLinkTableAddName(table, named, (ebpfMonLinkOwner){ .rec = (uint32_t)(rec - cat->rec), .field = i });
    }
}

/* An output link of pvAccess is noted by its PV: who puts to that PV from this process is this link. */
static void notePvaLink(ebpfMonMem *mem, const ebpfMonLink *link, ebpfMonLinkOwner owner, ebpfMonRecordLinks *links)
{
    char text[EBPFMON_PVA_LINK_TEXT];
    ebpfMonPvaLink pva;

    if (ebpfMonMemStr(mem, link->value, text, sizeof(text)) >= 0 && ebpfMonPvaLinkParse(text, &pva) == 0)
        ebpfMonLinkTableAdd(links->table, ebpfMonPvaLinkKey(pva.pv), owner);
}

/* 1: the record that this link leads to is processed, and *to is its index; else 0. dbDbLink.c processes the target of
 * a forward link, of a link with PP, and of an output link that writes to PROC, while it holds the lock. Whether the
 * target is passive does not matter here: SCAN can change, and the snapshot sees which record did not process. */
static int readLink(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonField *f, const ebpfMonRecord *rec,
                    ebpfMonRecordLinks *links, uint32_t *to)
{
    const ebpfMonLinkOwner owner = { .rec = (uint32_t)(rec - cat->rec), .field = (uint32_t)(f - cat->field) };
    const ebpfMonField *target;
    ebpfMonLinkEnd end;
    ebpfMonLink link;

    if (ebpfMonLinkRead(mem, cat->base, rec->addr + f->offset, &link))
        return 0;
    if (f->type == ebpfMonDbfOutlink && ebpfMonPvaLinkIsJson(&link))
        notePvaLink(mem, &link, owner, links);
    if (link.type < EBPFMON_LINK_CONSTANT || link.type > EBPFMON_LINK_LAST) {
        links->odd++;
        return 0;
    }
    if (link.type == EBPFMON_LINK_PN)
        return readNotifyLink(mem, cat, rec, &link, to);
    if (link.type != EBPFMON_LINK_DB || !link.pvt)
        return 0;
    if (ebpfMonLinkFindEnd(mem, cat, rec->addr, &link, &end)) {
        links->odd++;
        return 0;
    }
    if (f->type == ebpfMonDbfOutlink)
        ebpfMonLinkTableAdd(links->table, end.addrAt, owner);
    if (f->type != ebpfMonDbfFwdlink && !(link.pvlMask & EBPFMON_PVL_PP)) {
        if (f->type != ebpfMonDbfOutlink)
            return 0;
        target = ebpfMonCatalogueField(cat, end.pfldDes);
        if (!target || strcmp(target->name, "PROC") != 0)
            return 0;
    }
    *to = end.rec;
    return 1;
}

static unsigned readNumber(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec, const char *field)
{
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, rec->rtype, field);
    uint8_t byte = 0;
    uint16_t word = 0;

    if (f && f->size == sizeof(byte))
        ebpfMonMemRead(mem, rec->addr + f->offset, &byte, sizeof(byte));
    else if (f)
        ebpfMonMemRead(mem, rec->addr + f->offset, &word, sizeof(word));
    return byte | word;
}

/* OMSL is closed_loop, and DOL is a link. */
static int hasDolLink(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec)
{
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, rec->rtype, "DOL");
    int16_t type = EBPFMON_LINK_CONSTANT;

    if (f)
        ebpfMonMemRead(mem, rec->addr + f->offset + cat->base->link.type, &type, sizeof(type));
    return type != EBPFMON_LINK_CONSTANT && readNumber(mem, cat, rec, "OMSL") == MENU_OMSL_CLOSED_LOOP;
}

/* Nonzero: it may process without a put to it, and without a link of another record: by its SCAN, by a CP link of its
 * own, or by a driver. */
static int processesItself(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec)
{
    const ebpfMonRecType *rt = &cat->rtype[rec->rtype];
    ebpfMonLink link;

    if (readNumber(mem, cat, rec, "SCAN") != MENU_SCAN_PASSIVE || readNumber(mem, cat, rec, "DTYP") != 0)
        return 1;
    for (uint32_t i = rt->firstField; i < rt->firstField + rt->fieldCount; i++)
        if (cat->field[i].type == ebpfMonDbfInlink &&
            ebpfMonLinkRead(mem, cat->base, rec->addr + cat->field[i].offset, &link) == 0 &&
            ebpfMonLinkIsCp(&link))
            return 1;
    return 0;
}

/* As ebpfMonRecord.dev: a driver that has a record processed may write into it before that. */
static uint8_t findDevSup(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec)
{
    const ebpfMonRecType *type = &cat->rtype[rec->rtype];
    unsigned dtyp;

    if (!type->dev || type->stamps != EBPFMON_STAMPS_BASE || readNumber(mem, cat, rec, "SCAN") != MENU_SCAN_IO_INTR)
        return 0;
    dtyp = readNumber(mem, cat, rec, "DTYP");
    return dtyp < type->devs && type->dev[dtyp].stamps != EBPFMON_STAMPS_BASE ? (uint8_t)(dtyp + 1) : 0;
}

/* The name of its device support; "": not known. */
static const char *findDevName(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec)
{
    const ebpfMonRecType *type = &cat->rtype[rec->rtype];
    unsigned dtyp = type->dev ? readNumber(mem, cat, rec, "DTYP") : 0;

    return dtyp < type->devs ? type->dev[dtyp].name : "";
}

/* Nonzero: device support of asyn for output arrays, which sets the time stamp before it has the record processed by
 * scanOnce() if the driver changes its value (interruptCallback, devAsynXXXArray.cpp). */
static int isOutputArray(const char *devName)
{
    return strncmp(devName, "asyn", 4) == 0 && strstr(devName, "ArrayOut");
}

/*
 * EBPFMON_REC_… of the record types of Base whose process() may complete without a new time stamp, or return before.
 * From the sources of R7.0.1 to R7.0.8.1 (modules/database/src/std/rec). Up to 7.0.3 these types do so less often:
 * there the flag costs a trap, and no count.
 */
static uint8_t findStampFlags(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec,
                              const char *devName)
{
    const char *type = cat->rtype[rec->rtype].name;
    double seconds = 0;
    const ebpfMonField *f;

    switch (cat->rtype[rec->rtype].stamps) {
    case EBPFMON_STAMPS_BASE:
        break;
    case EBPFMON_STAMPS_SEEN:
        /* transform with IVLA leaves after its time stamp if an input is invalid */
        return EBPFMON_REC_WALK | (readNumber(mem, cat, rec, "IVLA") ? EBPFMON_REC_TSE : 0);
    case EBPFMON_STAMPS_UNLOCKED:
        return EBPFMON_REC_TSE | EBPFMON_REC_WALK | EBPFMON_REC_UNLOCKED;
    default:
        return EBPFMON_REC_TSE | EBPFMON_REC_WALK;
    }
    if (isOutputArray(devName))
        return EBPFMON_REC_TSE | EBPFMON_REC_WALK;
    if (strcmp(type, "compress") == 0) /* stamped when its buffer is full, not each time it reads */
        return EBPFMON_REC_WALK;
    if (strcmp(type, "aao") == 0) /* leaves when DOL cannot be read, and has processed its source before */
        return hasDolLink(mem, cat, rec) ? EBPFMON_REC_WALK : 0;
    if (strcmp(type, "mbbo") == 0 || strcmp(type, "mbboDirect") == 0) {
        if (hasDolLink(mem, cat, rec)) /* "goto CONTINUE" when DOL cannot be read, past the time stamp */
            return EBPFMON_REC_TSE | EBPFMON_REC_WALK;
        if (!readNumber(mem, cat, rec, "UDF"))
            return 0;
        return EBPFMON_REC_UNDEFINED | EBPFMON_REC_WALK |
               (processesItself(mem, cat, rec) ? EBPFMON_REC_TSE : 0);
    }
    if (strcmp(type, "histogram") == 0) { /* with SDEL a timer stamps it */
        f = ebpfMonCatalogueFieldNamed(cat, rec->rtype, "SDEL");
        if (f && f->size == sizeof(seconds))
            ebpfMonMemRead(mem, rec->addr + f->offset, &seconds, sizeof(seconds));
        return seconds > 0 ? EBPFMON_REC_TSE : 0;
    }
    return 0;
}

/* Nonzero: SSCN is set, or cannot be read. */
static int hasSimulatedScan(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec)
{
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(cat, rec->rtype, "SSCN");
    uint16_t scan = NO_SCAN;

    return f && (ebpfMonMemRead(mem, rec->addr + f->offset, &scan, sizeof(scan)) || scan != NO_SCAN);
}

static void readRecord(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec,
                       ebpfMonRecordLinks *links, oneRecord *read)
{
    const ebpfMonRecType *rt = &cat->rtype[rec->rtype];
    uint32_t to[EBPFMON_FIELDS_LIMIT], via[EBPFMON_FIELDS_LIMIT], n = 0;
    int16_t tse = 0, tselType = EBPFMON_LINK_CONSTANT;
    const char *devName = findDevName(mem, cat, rec);

    memset(read, 0, sizeof(*read));
    read->fwd = UINT32_MAX;
    read->flags = findStampFlags(mem, cat, rec, devName);
    read->dev = findDevSup(mem, cat, rec);
    if (read->dev && rt->dev[read->dev - 1].stamps != EBPFMON_STAMPS_SEEN)
        read->flags |= EBPFMON_REC_STAMPED;
    if (hasSimulatedScan(mem, cat, rec))
        read->flags |= EBPFMON_REC_SCANS;
    for (uint32_t i = rt->firstField; i < rt->firstField + rt->fieldCount; i++) {
        const ebpfMonField *f = &cat->field[i];

        if (f->type < ebpfMonDbfInlink || f->type > ebpfMonDbfFwdlink || !readLink(mem, cat, f, rec, links, &to[n]))
            continue;
        /* not every forward link: fanout's LNK1 … are followed before its own completion */
        if (strcmp(f->name, "FLNK") == 0)
            read->fwd = to[n];
        /* dbProcess reads SDIS, and may process what it points to, before it finds the record disabled */
        if (strcmp(f->name, "SDIS") == 0)
            read->flags |= EBPFMON_REC_WALK;
        via[n++] = i;
        if (strcmp(f->name, "COUTP") == 0 && strcmp(rt->name, "scaler") == 0) { /* special() writes it for a put to CNT,
                                                                                 * and process() may once more */
            to[n] = to[n - 1];
            via[n++] = i;
        }
    }
    if (n && (read->to = malloc(2 * n * sizeof(*to))) != NULL) {
        memcpy(read->to, to, n * sizeof(*to));
        memcpy(read->to + n, via, n * sizeof(*via));
        read->toCount = n;
    }
    ebpfMonMemRead(mem, rec->addr + cat->common.tse, &tse, sizeof(tse));
    ebpfMonMemRead(mem, rec->addr + cat->common.tsel + cat->base->link.type, &tselType, sizeof(tselType));
    if (tse != 0 || tselType != EBPFMON_LINK_CONSTANT)
        read->flags |= EBPFMON_REC_TSE | EBPFMON_REC_TIMED;
    else if (strcmp(devName, "stream") == 0) /* a protocol may write to TIME (matchValue, StreamEpics.cc) */
        read->flags |= EBPFMON_REC_SETS_TSE;
    else if (strncmp(devName, "asynOctetWrite", 14) == 0 && strcmp(rt->name, "waveform") != 0)
        read->flags |= EBPFMON_REC_TIMED; /* asyn:READBACK: the time stamp is the driver's, which may be earlier than
                                           * the last one (processCommon, devAsynOctet.c) */
}

/* The IOC may be changing a link: so it is read once more a moment later. */
static void readRecordWhole(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonRecord *rec,
                            ebpfMonRecordLinks *links, oneRecord *read)
{
    uint32_t odd = links->odd;

    readRecord(mem, cat, rec, links, read);
    while (links->odd > odd && links->again < AGAIN_MAX) {
        links->again++;
        links->odd = odd;
        free(read->to);
        ebpfMonMemFlush(mem);
        readRecord(mem, cat, rec, links, read);
    }
}

ebpfMonRecordLinks *ebpfMonRecordLinksRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t index)
{
    int all = index == EBPFMON_ALL_RECORDS;
    ebpfMonRecordLinks *links;

    if (!all && index >= cat->count)
        return NULL;
    links = calloc(1, sizeof(*links));
    if (!links)
        return NULL;
    links->index = index;
    links->first = all ? 0 : index;
    links->count = all ? cat->count : 1;
    links->rec = calloc((size_t)links->count + 1, sizeof(*links->rec));
    links->table = ebpfMonLinkTableNew();
    if (!links->rec || !links->table) {
        ebpfMonRecordLinksFree(links);
        return NULL;
    }
    for (uint32_t i = 0; i < links->count; i++) {
        readRecordWhole(mem, cat, &cat->rec[links->first + i], links, &links->rec[i]);
        readNames(mem, cat, &cat->rec[links->first + i], links->table);
    }
    return links;
}

void ebpfMonRecordLinksFree(ebpfMonRecordLinks *links)
{
    if (!links)
        return;
    for (uint32_t i = 0; links->rec && i < links->count; i++)
        free(links->rec[i].to);
    free(links->rec);
    ebpfMonLinkTableFree(links->table);
    free(links);
}

static int hasOtherLinks(const ebpfMonRecord *r, const oneRecord *n)
{
    return n->toCount != r->toCount || n->fwd != r->fwd ||
           (n->toCount && memcmp(n->to, r->to, n->toCount * sizeof(*n->to)) != 0);
}

uint32_t ebpfMonRecordLinksCountOdd(const ebpfMonRecordLinks *links)
{
    return links->odd;
}

int ebpfMonRecordLinksDiffer(const ebpfMonCatalogue *cat, const ebpfMonRecordLinks *links)
{
    for (uint32_t i = 0; i < links->count; i++) {
        const ebpfMonRecord *r = &cat->rec[links->first + i];

        if (hasOtherLinks(r, &links->rec[i]) || links->rec[i].flags != r->flags || links->rec[i].dev != r->dev)
            return 1;
    }
    return 0;
}

static void setTargets(uint8_t *missed, const uint32_t *to, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        missed[to[k]] = 1;
}

void ebpfMonRecordLinksFindMissed(const ebpfMonCatalogue *cat, const ebpfMonRecordLinks *links, uint8_t *missed)
{
    for (uint32_t i = 0; i < links->count; i++) {
        const ebpfMonRecord *r = &cat->rec[links->first + i];
        const oneRecord *n = &links->rec[i];

        if (n->flags & ~r->flags)
            missed[links->first + i] = 1;
        if (!hasOtherLinks(r, n))
            continue;
        setTargets(missed, r->to, r->toCount);
        setTargets(missed, n->to, n->toCount);
    }
}

uint32_t ebpfMonRecordLinksFollow(const ebpfMonCatalogue *cat, uint8_t *reached, uint8_t mark, uint32_t *queue,
                                  uint32_t count)
{
    for (uint32_t at = 0; at < count; at++)
        for (uint32_t k = 0; k < cat->rec[queue[at]].toCount; k++) {
            uint32_t to = cat->rec[queue[at]].to[k];

            if (reached[to])
                continue;
            queue[count++] = to;
            reached[to] = mark;
        }
    return count;
}

void ebpfMonRecordLinksExchange(ebpfMonCatalogue *cat, ebpfMonRecordLinks *links)
{
    for (uint32_t i = 0; i < links->count; i++) {
        ebpfMonRecord *r = &cat->rec[links->first + i];
        oneRecord *n = &links->rec[i], old = { r->to, r->toCount, r->fwd, r->flags, r->dev };

        r->to = n->to;
        r->toCount = n->toCount;
        r->fwd = n->fwd;
        r->flags = n->flags;
        r->dev = n->dev;
        *n = old;
    }
    ebpfMonLinkTableReplace(cat->links, links->index, links->table);
}

void ebpfMonRecordLinksTakeOver(ebpfMonCatalogue *cat, ebpfMonCatalogue *older)
{
    ebpfMonLinkTable *links = cat->links;

    for (uint32_t i = 0; i < cat->count; i++) {
        ebpfMonRecord *r = &cat->rec[i], *o = &older->rec[i];

        r->to = o->to;
        r->toCount = o->toCount;
        r->fwd = o->fwd;
        r->flags = o->flags;
        r->dev = o->dev;
        o->to = NULL;
        o->toCount = 0;
    }
    for (uint32_t k = 0; k < cat->rtypes; k++) {
        ebpfMonRecType *type = &cat->rtype[k], *was = &older->rtype[k];

        type->stamps = was->stamps;
        type->devs = was->devs;
        type->dev = was->dev;
        was->dev = NULL;
    }
    cat->links = older->links;
    older->links = links;
    cat->since = older->since;
}
