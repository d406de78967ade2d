/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "inventory/fieldText.h"
#include "inventory/iocInventory.h"
#include "ioc/baseLayout.h"

#define PORTION    2000  /* records that may be read with one budget of ebpfMonMem */
#define TYPES_MAX  4096
#define INFOS_MAX  1000  /* info tags of a record. A longer list is taken for damaged memory */
#define TEXT_BYTES (1u << 20) /* all texts of one record */

typedef struct { /* the layout of dbInfoNode (dbBase.h) */
    struct layoutNode node;
    uint64_t name, string;
} infoNode;

typedef struct {
    uint32_t rec, name;
} aliasOf;

typedef struct {
    const ebpfMonInventoryIoc *ioc;
    const ebpfMonInventorySink *sink;
    const char *const *fieldNames;
    ebpfMonWorker *worker;
    ebpfMonMem *mem;
    aliasOf   *alias;      /* sorted by record */
    unsigned   aliases;
    ebpfMonInventoryRecord record; /* the record that is read now */
    char      *text;       /* TEXT_BYTES: its texts */
    size_t     used;       /* bytes of "text" */
    unsigned   done;       /* records that were read */
    unsigned   nodes;      /* members of the lists of records, also aliases */
    char      *why;
    size_t     whySize;
} recordReader;

/* Sets "why" and returns -1. */
static int setFailure(recordReader *r, const char *format, ...) EPICS_PRINTF_STYLE(2, 3);

static int setFailure(recordReader *r, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->why, r->whySize, format, args);
    va_end(args);
    return -1;
}

static int compareAliases(const void *a, const void *b)
{
    const aliasOf *x = a, *y = b;

    return x->rec != y->rec ? (x->rec < y->rec ? -1 : 1) : (x->name > y->name) - (x->name < y->name);
}

static int collectAliases(recordReader *r)
{
    const ebpfMonCatalogue *cat = r->ioc->cat;

    r->alias = calloc(cat->aliases + 1u, sizeof(*r->alias));
    if (!r->alias)
        return setFailure(r, "out of memory");
    for (uint32_t i = 0; i < cat->nameCount && r->aliases < cat->aliases; i++)
        if (cat->names[i].rec < cat->count && cat->names[i].name != cat->rec[cat->names[i].rec].name)
            r->alias[r->aliases++] = (aliasOf){cat->names[i].rec, cat->names[i].name};
    qsort(r->alias, r->aliases, sizeof(*r->alias), compareAliases);
    return 0;
}

static void addAliases(recordReader *r)
{
    unsigned low = 0, high = r->aliases;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (r->alias[middle].rec < r->record.index)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < r->aliases && r->alias[low].rec == r->record.index && r->record.aliases < EBPFMON_INV_ALIASES; low++)
        r->record.alias[r->record.aliases++] = r->ioc->cat->pool + r->alias[low].name;
}

/* Returns room for a text of this record; NULL: there is none left. */
static char *takeRoom(recordReader *r, size_t size)
{
    char *at = r->text + r->used;

    if (r->used + size > TEXT_BYTES)
        return NULL;
    r->used += size;
    return at;
}

/* Reads a text of the IOC and cleans it; it is valid until the next record. A very long text is cut. NULL: the text
 * cannot be read, or is empty. */
static const char *keepText(recordReader *r, uint64_t at)
{
    char raw[EBPFMON_INV_VALUE], clean[EBPFMON_INV_VALUE], *kept;
    int length = ebpfMonMemStr(r->mem, at, raw, sizeof(raw));

    if (length < 0) { /* it cannot be read, or it is longer than "raw" */
        if (ebpfMonMemRead(r->mem, at, raw, sizeof(raw)))
            return NULL;
        memcpy(raw + sizeof(raw) - 4, "...", 4);
    }
    if (!raw[0])
        return NULL;
    ebpfMonTextCopySpaces(clean, sizeof(clean), raw);
    kept = takeRoom(r, strlen(clean) + 1);
    return kept ? strcpy(kept, clean) : NULL;
}

static int addInfos(recordReader *r, const struct layoutList *list)
{
    uint64_t at = list->first;

    if (list->count < 0 || list->count > INFOS_MAX)
        return setFailure(r, "the info tags of %s cannot be believed", r->record.name);
    for (int32_t i = 0; i < list->count && at && r->record.infos < EBPFMON_INV_INFOS; i++) {
        ebpfMonInventoryPair *info = &r->record.info[r->record.infos];
        infoNode node;

        if (ebpfMonMemRead(r->mem, at, &node, sizeof(node)))
            return setFailure(r, "the info tags of %s cannot be read", r->record.name);
        info->name = keepText(r, node.name);
        info->value = info->name ? keepText(r, node.string) : NULL;
        r->record.infos += info->value != NULL;
        at = node.node.next;
    }
    return 0;
}

static void addFields(recordReader *r)
{
    const ebpfMonRecord *rec = &r->ioc->cat->rec[r->record.index];
    char clean[EBPFMON_FIELD_TEXT];

    for (const char *const *name = r->fieldNames; *name && r->record.fields < EBPFMON_INV_FIELDS; name++) {
        const ebpfMonField *field = ebpfMonCatalogueFieldNamed(r->ioc->cat, rec->rtype, *name);
        ebpfMonInventoryPair *pair = &r->record.field[r->record.fields];
        char *kept;

        if (!field || ebpfMonFieldTextRead(r->mem, r->ioc->cat, rec->addr, field, clean, sizeof(clean)) || !clean[0])
            continue;
        kept = takeRoom(r, strlen(clean) + 1);
        if (!kept)
            continue;
        pair->name = *name;
        pair->value = strcpy(kept, clean);
        r->record.fields++;
    }
}

static int readRecord(recordReader *r, const struct layoutRecordNode *node)
{
    const ebpfMonCatalogue *cat = r->ioc->cat;
    long index = ebpfMonCatalogueFindAddr(cat, node->precord);

    if (index < 0)
        return setFailure(r, "its database changed while it was read");
    r->used = 0;
    r->record.index = (uint32_t)index;
    r->record.aliases = r->record.infos = r->record.fields = 0;
    r->record.name = ebpfMonCatalogueName(cat, r->record.index);
    r->record.type = cat->rtype[cat->rec[index].rtype].name;
    addAliases(r);
    if (addInfos(r, &node->infoList))
        return -1;
    addFields(r);
    if (++r->done > cat->count) /* a list without an end would fill the disk */
        return setFailure(r, "its lists have more than the %u records that it had", cat->count);
    if (r->done % PORTION == 0) {
        ebpfMonMemFlush(r->mem); /* begins a new budget */
        ebpfMonWorkerGiveSign(r->worker);
        if (r->worker && ebpfMonWorkerIsStopping(r->worker))
            return setFailure(r, "the monitor ends");
    }
    return r->sink->record(r->sink->arg, &r->record) ? -1 : 0;
}

static int readNodes(recordReader *r, uint64_t listAt)
{
    struct layoutList list;
    uint64_t at, prev = 0;

    if (ebpfMonMemRead(r->mem, listAt, &list, sizeof(list)) || list.count < 0 || list.count > EBPFMON_RECORDS_LIMIT)
        return setFailure(r, "a list of records cannot be read");
    at = list.first;
    for (int32_t i = 0; i < list.count && at; i++) {
        struct layoutRecordNode node;

        if (ebpfMonMemRead(r->mem, at, &node, sizeof(node)))
            return setFailure(r, "a record cannot be read");
        if (node.prev != prev || ++r->nodes > EBPFMON_RECORDS_LIMIT)
            return setFailure(r, "a list of records changed while it was read");
        prev = at;
        at = node.next;
        if (node.precord && !(node.flags & EBPFMON_ISALIAS) && readRecord(r, &node))
            return -1;
    }
    return 0;
}

static int readTypes(recordReader *r)
{
    uint64_t base = ebpfMonMemPtr(r->mem, r->ioc->pdbbase), at;
    struct layoutList list;

    if (!base || ebpfMonMemRead(r->mem, base + EBPFMON_RECORDTYPELIST, &list, sizeof(list)) || list.count < 0 ||
        list.count > TYPES_MAX)
        return setFailure(r, "its memory cannot be read");
    at = list.first;
    for (int32_t i = 0; i < list.count && at; i++) {
        uint64_t next = ebpfMonMemPtr(r->mem, at);

        if (readNodes(r, at + EBPFMON_RecordType_recList))
            return -1;
        at = next;
    }
    if (r->done != r->ioc->cat->count)
        return setFailure(r, "only %u of %u records could be read", r->done, r->ioc->cat->count);
    return 0;
}

int ebpfMonInventoryReadRecords(const ebpfMonInventoryIoc *ioc, const char *const *fieldNames, ebpfMonWorker *worker,
                                const ebpfMonInventorySink *sink, char *why, size_t size)
{
    recordReader *r = calloc(1, sizeof(*r));
    int status = -1;

    snprintf(why, size, "out of memory");
    if (!r)
        return -1;
    *r = (recordReader){ .ioc = ioc, .sink = sink, .fieldNames = fieldNames, .worker = worker, .why = why,
                         .whySize = size };
    r->text = malloc(TEXT_BYTES);
    r->mem = ebpfMonMemNew(ioc->pid);
    if (r->text && r->mem && collectAliases(r) == 0)
        status = readTypes(r);
    if (status == 0)
        why[0] = 0;
    ebpfMonMemFree(r->mem);
    free(r->alias);
    free(r->text);
    free(r);
    return status;
}
