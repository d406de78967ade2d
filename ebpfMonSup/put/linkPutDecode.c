/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "put/linkPutDecode.h"

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
 * with PP or to PROC; but none of CA. 0: none of this IOC. The text is believed whether or not the IOC takes it, and if
 * in doubt it is such a link: what is found is looked at in the IOC.
 */
static uint64_t findTarget(const ebpfMonCatalogue *cat, const char *text, int fieldType)
{
    char name[EBPFMON_NAME_SIZE];
    size_t len, base;
    const char *word = findNextWord(text, &len);
    int processes = fieldType == ebpfMonDbfFwdlink;
    long index;

    base = strcspn(word, ". \t\r\n");
    if (!base || base >= sizeof(name))
        return 0;
    memcpy(name, word, base);
    name[base] = 0;
    processes |= fieldType == ebpfMonDbfOutlink && isWord(word + base, len - base, ".PROC");
    for (word = findNextWord(word + len, &len); len; word = findNextWord(word + len, &len)) {
        if (isWord(word, len, "CA") || isWord(word, len, "CP") || isWord(word, len, "CPP"))
            return 0;
        processes |= isWord(word, len, "PP");
    }
    index = processes ? ebpfMonCatalogueFind(cat, name) : -1;
    return index < 0 ? 0 : cat->rec[index].addr;
}

/* The same of the value that is put: a text as it is sent, which put->val is not. A number makes a constant. */
static uint64_t findNewTarget(const ebpfMonCatalogue *cat, const struct ebpfMonPutEvent *ev, int fieldType)
{
    char text[EBPFMON_VAL_MAX + 1];

    if (ev->dbrType > ebpfMonDbfUchar || ev->newLen > EBPFMON_VAL_MAX)
        return 0;
    memcpy(text, (const char *)(ev + 1) + ev->oldLen, ev->newLen);
    text[ev->newLen] = 0;
    return findTarget(cat, text, fieldType);
}

/* The put may set something else than 0. */
static int isNonzero(const ebpfMonPut *put)
{
    return !put->isNumber || put->number != 0;
}

/* Whether it begins a time in which the time stamp does not show each processing: findStampFlags, ioc/recordLinks.c,
 * says why of each. */
static void findStamps(const char *type, const char *field, const ebpfMonPut *put, ebpfMonLinkPut *change)
{
    static const char *const withDol[] = { "mbbo", "mbboDirect", "aao", NULL };

    if (strcmp(field, "TSE") == 0 || (strcmp(field, "SDEL") == 0 && strcmp(type, "histogram") == 0)) {
        change->isStamp = 1;
        change->stops = (uint8_t)isNonzero(put);
    } else if (strcmp(field, "TSEL") == 0 || (strcmp(field, "DOL") == 0 && isOneOf(type, withDol))) {
        change->isStamp = 1;
        change->stops = put->val[0] != 0;
    } else if (strcmp(field, "OMSL") == 0 && isOneOf(type, withDol)) {
        change->isStamp = change->stops = 1;
    } else if (strcmp(field, "UDF") == 0 && strncmp(type, "mbbo", 4) == 0) {
        change->isStamp = 1;
        change->stops = change->isBrief = (uint8_t)isNonzero(put); /* until a put to VAL defines it */
    }
}

/*
 * Nonzero: after a put to this field, which is no link, the record may have to be counted in another way
 * (ioc/recordLinks.c). A put to an undefined mbbo or mbboDirect may define it; one to another field than VAL processes
 * it without a time stamp, and if nothing else makes it process, nobody counts that.
 */
static int changesCounting(ebpfMonTarget *t, uint64_t precord, const ebpfMonField *f)
{
    static const char *const fields[] = { "TSE", "TSEL", "OMSL", "UDF", "SDEL", "DTYP", "SSCN", NULL };
    long index;

    if (isOneOf(f->name, fields))
        return 1;
    index = ebpfMonCatalogueFindAddr(t->cat, precord);
    if (index < 0 || !(t->cat->rec[index].flags & EBPFMON_REC_UNDEFINED))
        return 0;
    if (strcmp(f->name, "VAL") != 0)
        ebpfMonTargetNoteUnseen(t, (uint32_t)index);
    return 1;
}

void ebpfMonLinkPutDecode(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const ebpfMonField *f,
                          const ebpfMonPut *put, ebpfMonLinkPut *change)
{
    int isLink = ev->site == EBPFMON_SITE_LINK;

    memset(change, 0, sizeof(*change));
    if (!isLink && (ev->site != EBPFMON_SITE_PUT || !f || !changesCounting(t, ev->precord, f)))
        return;
    change->iocId = ev->head.iocId;
    change->tid = ev->head.tid;
    change->at = ev->head.ktime;
    change->precord = ev->precord;
    change->pfldDes = ev->pfldDes;
    change->isLink = (uint8_t)isLink;
    if (!f)
        return;
    if (isLink) {
        change->target = findNewTarget(t->cat, ev, f->type);
        change->old = findTarget(t->cat, put->old, f->type);
    }
    findStamps(t->cat->rtype[f->rtype].name, f->name, put, change);
}
