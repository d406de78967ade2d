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

    if (strcmp(field, "TSE") == 0 || (strcmp(field, "SDEL") == 0 && strcmp(type, "histogram") == 0) ||
        (strcmp(field, "UDF") == 0 && strncmp(type, "mbbo", 4) == 0))
        return isNonzero(put);
    if (strcmp(field, "TSEL") == 0 || (strcmp(field, "DOL") == 0 && isOneOf(type, withDol)))
        return put->val[0] != 0;
    return strcmp(field, "OMSL") == 0 && isOneOf(type, withDol);
}

/*
 * Nonzero: after a put to this field, which is no link, the record may have to be counted in another way
 * (ioc/recordLinks.c). A put to an undefined mbbo or mbboDirect may define it; one to another field than VAL processes
 * it without a time stamp, and if nothing else makes it process, nobody counts that.
 */
static int changesCounting(ebpfMonTarget *t, uint64_t precord, const ebpfMonField *f)
{
    static const char *const fields[] = { "TSE", "TSEL", "OMSL", "UDF", "SDEL", "DTYP", "SSCN", "SCAN", NULL };
    long index;

    if (isOneOf(f->name, fields))
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
    int isLink = ev->site == EBPFMON_SITE_LINK;
    long index;

    memset(change, 0, sizeof(*change));
    if (!isLink && (ev->site != EBPFMON_SITE_PUT || !f || !changesCounting(t, ev->precord, f)))
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
