/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <yajl_parse.h>

#include "common/hash.h"
#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"

#define BYTES 128 /* of a struct link, at most */

static void takeApart(const uint8_t *bytes, const ebpfMonBaseRelease *base, ebpfMonLink *link)
{
    memcpy(&link->owner, bytes + base->link.precord, sizeof(link->owner));
    memcpy(&link->value, bytes + base->link.constantStr, sizeof(link->value));
    memcpy(&link->pvname, bytes + base->link.pvname, sizeof(link->pvname));
    memcpy(&link->pvt, bytes + base->link.pvt, sizeof(link->pvt));
    memcpy(&link->type, bytes + base->link.type, sizeof(link->type));
    memcpy(&link->pvlMask, bytes + base->link.pvlMask, sizeof(link->pvlMask));
}

int ebpfMonLinkRead(ebpfMonMem *mem, const ebpfMonBaseRelease *base, uint64_t at, ebpfMonLink *link)
{
    uint8_t bytes[BYTES];

    if (ebpfMonMemRead(mem, at, bytes, base->link.size))
        return -1;
    takeApart(bytes, base, link);
    return 0;
}

int ebpfMonLinkReadNow(pid_t pid, const ebpfMonBaseRelease *base, uint64_t at, ebpfMonLink *link)
{
    uint8_t bytes[BYTES];

    if (ebpfMonMemReadNow(pid, at, bytes, base->link.size))
        return -1;
    takeApart(bytes, base, link);
    return 0;
}

int ebpfMonLinkReadLate(ebpfMonLateReads *reads, pid_t pid, const ebpfMonBaseRelease *base, uint64_t at,
                        ebpfMonLink *link)
{
    uint8_t bytes[BYTES];

    if (ebpfMonLateReadsGetBytes(reads, pid, at, bytes, base->link.size))
        return -1;
    takeApart(bytes, base, link);
    return 0;
}

/* 2: it is the DBADDR of a known record and a known field; 1: of a known record; 0: it is not a DBADDR. An attribute
 * (RTYP) is not a field. */
static int matchAddr(const ebpfMonCatalogue *cat, const struct layoutDbAddr *addr, long *rec)
{
    const ebpfMonField *f;

    *rec = ebpfMonCatalogueFindAddr(cat, addr->precord);
    if (*rec < 0)
        return 0;
    f = ebpfMonCatalogueField(cat, addr->pfldDes);
    return f && f->rtype == cat->rec[*rec].rtype ? 2 : 1;
}

int ebpfMonLinkFindEnd(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t owner, const ebpfMonLink *link,
                       ebpfMonLinkEnd *end)
{
    struct {
        uint64_t first;
        struct layoutDbAddr addr;
    } bytes;
    struct layoutDbAddr bare, *best = &bytes.addr;
    long rec, bareRec;
    int is, isBare;

    /* The end of a DBADDR may be the end of what is mapped: what follows it is not needed then. */
    memset(&bytes, 0, sizeof(bytes));
    if (link->owner != owner || (ebpfMonMemRead(mem, link->pvt, &bytes, sizeof(bytes)) &&
                                 ebpfMonMemRead(mem, link->pvt, &bytes, sizeof(bare))))
        return -1;
    /*
     * dbDbLink.c keeps a DBADDR up to 7.0.4.1, and a dbChannel from 7.0.5 on. A DBADDR begins with its record; a
     * dbChannel begins with a name, and the DBADDR follows. In a DBADDR of a NAME field the next member is the same
     * number once more; its third is no description of a field then.
     */
    memcpy(&bare, &bytes, sizeof(bare));
    is = matchAddr(cat, &bytes.addr, &rec);
    isBare = matchAddr(cat, &bare, &bareRec);
    if (isBare > is || (isBare && isBare == is)) {
        best = &bare;
        rec = bareRec;
    } else if (!is) {
        return -1;
    }
    end->rec = (uint32_t)rec;
    end->addrAt = best == &bare ? link->pvt : link->pvt + offsetof(struct layoutDbChannel, addr);
    end->pfldDes = best->pfldDes;
    return 0;
}

/* --- links of pvAccess --- */

#define JSON_LINK 8 /* link.h, from 3.16 on; before, no link has this type */

/* Where the parser is: in the outer map, and in that of "pva". */
typedef struct {
    ebpfMonPvaLink *pva;
    unsigned depth;
    int isPva;   /* the last key of the outer map is "pva" */
    char key[8]; /* the last key within its map; "": another one */
} linkParser;

static int onKey(void *arg, const unsigned char *text, size_t length)
{
    linkParser *p = arg;

    if (p->depth == 1)
        p->isPva = length == 3 && memcmp(text, "pva", 3) == 0;
    memset(p->key, 0, sizeof(p->key));
    if (p->depth == 2 && p->isPva && length < sizeof(p->key))
        memcpy(p->key, text, length);
    return 1;
}

static int onString(void *arg, const unsigned char *text, size_t length)
{
    linkParser *p = arg;

    if (p->isPva && (p->depth == 1 || strcmp(p->key, "pv") == 0) && p->depth <= 2) {
        if (length >= sizeof(p->pva->pv))
            return 0;
        memcpy(p->pva->pv, text, length);
        p->pva->pv[length] = 0;
    } else if (p->depth == 2 && strcmp(p->key, "proc") == 0) {
        p->pva->isCp = (length == 2 && memcmp(text, "CP", 2) == 0) || (length == 3 && memcmp(text, "CPP", 3) == 0);
    }
    return 1;
}

static int onMap(void *arg)
{
    ((linkParser *)arg)->depth++;
    return 1;
}

static int onMapEnd(void *arg)
{
    ((linkParser *)arg)->depth--;
    return 1;
}

int ebpfMonPvaLinkParse(const char *text, ebpfMonPvaLink *pva)
{
    /* lists count as maps: what is in them is no part of the link itself */
    static const yajl_callbacks callbacks = {
        .yajl_string = onString, .yajl_start_map = onMap, .yajl_map_key = onKey, .yajl_end_map = onMapEnd,
        .yajl_start_array = onMap, .yajl_end_array = onMapEnd,
    };
    linkParser p = { .pva = pva };
    yajl_handle yajl = yajl_alloc(&callbacks, NULL, &p);
    int isGood;

    memset(pva, 0, sizeof(*pva));
    if (!yajl)
        return -1;
    yajl_config(yajl, yajl_allow_json5, 1); /* as dbJLink.c */
    isGood = yajl_parse(yajl, (const unsigned char *)text, strlen(text)) == yajl_status_ok &&
             yajl_complete_parse(yajl) == yajl_status_ok;
    yajl_free(yajl);
    return isGood && pva->pv[0] ? 0 : -1;
}

int ebpfMonPvaLinkIsJson(const ebpfMonLink *link)
{
    return link->type == JSON_LINK && link->value;
}

uint64_t ebpfMonPvaLinkKey(const char *pv)
{
    return ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, pv, strlen(pv)) | 1ull << 63;
}
