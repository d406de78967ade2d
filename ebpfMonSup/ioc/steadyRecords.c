/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "ioc/baseLayout.h"
#include "ioc/steadyRecords.h"

#define SUPPORTS_MAX 1000 /* device supports of a record type */
#define SOFT_MAX     2

/* Fields of one record type; NULL: it has no such field. */
typedef struct {
    int       isKnown;     /* process() never returns before its end, with soft device support or without any */
    int       hasSupports; /* it has device supports … */
    uint64_t  soft[SOFT_MAX]; /* … and these dsets are soft ones of Base that are not asynchronous; 0: none */
    const ebpfMonField *dset, *pact, *disa, *disv, *sdis, *simm, *siml, *odly;
} RecType;

struct ebpfMonSteadyRecords {
    ebpfMonMem *mem;
    const ebpfMonCatalogue *cat;
    RecType    *type; /* by record type */
};

/* From process() of R3.14.12.8 to R7.0.10 (modules/database/src/std/rec). Not here: sub and aSub, whose functions may
 * be asynchronous; seq, and all types that may leave process() without a time stamp (recordLinks.c). */
static const char *const types[] = {
    "ai", "ao", "bi", "bo", "calc", "calcout", "int64in", "int64out", "longin", "longout", "lsi", "lso", "mbbi",
    "mbbiDirect", "sel", "stringin", "stringout", "waveform",
};

static int isKnownType(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(types[i], name) == 0)
            return 1;
    return 0;
}

static int isSoft(ebpfMonMem *mem, const struct layoutDevSup *support)
{
    char name[32];

    return !ebpfMonMemStr(mem, support->choice, name, sizeof(name)) &&
           (strcmp(name, "Soft Channel") == 0 || strcmp(name, "Raw Soft Channel") == 0);
}

/* Finds the soft device supports of a type. A record uses its DSET, not its DTYP: a put to DTYP does not change
 * that. */
static void findSoftSupports(ebpfMonMem *mem, RecType *t)
{
    struct layoutRecordType rtype;
    struct layoutDevSup support;
    struct layoutFldDes des;
    uint64_t at;
    int found = 0;

    if (ebpfMonMemRead(mem, t->dset->addr, &des, sizeof(des)) ||
        ebpfMonMemRead(mem, des.pdbRecordType, &rtype, sizeof(rtype))) {
        t->isKnown = 0;
        return;
    }
    at = rtype.devList.first;
    t->hasSupports = at != 0;
    for (int i = 0; at && i < SUPPORTS_MAX && found < SOFT_MAX; i++, at = support.node.next) {
        if (ebpfMonMemRead(mem, at, &support, sizeof(support)))
            return;
        if (isSoft(mem, &support))
            t->soft[found++] = support.pdset;
    }
}

static RecType readRecType(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint16_t rtype)
{
    RecType t = {
        .dset = ebpfMonCatalogueFieldNamed(cat, rtype, "DSET"), .pact = ebpfMonCatalogueFieldNamed(cat, rtype, "PACT"),
        .disa = ebpfMonCatalogueFieldNamed(cat, rtype, "DISA"), .disv = ebpfMonCatalogueFieldNamed(cat, rtype, "DISV"),
        .sdis = ebpfMonCatalogueFieldNamed(cat, rtype, "SDIS"), .simm = ebpfMonCatalogueFieldNamed(cat, rtype, "SIMM"),
        .siml = ebpfMonCatalogueFieldNamed(cat, rtype, "SIML"), .odly = ebpfMonCatalogueFieldNamed(cat, rtype, "ODLY"),
    };

    t.isKnown = isKnownType(cat->rtype[rtype].name) && t.dset && t.pact && t.disa && t.disv && t.sdis;
    if (t.isKnown)
        findSoftSupports(mem, &t);
    return t;
}

ebpfMonSteadyRecords *ebpfMonSteadyRecordsNew(ebpfMonMem *mem, const ebpfMonCatalogue *cat)
{
    ebpfMonSteadyRecords *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->mem = mem;
    s->cat = cat;
    s->type = calloc(cat->rtypes + 1u, sizeof(*s->type));
    if (!s->type) {
        free(s);
        return NULL;
    }
    for (uint32_t i = 0; i < cat->rtypes; i++)
        if (cat->rtype[i].records)
            s->type[i] = readRecType(mem, cat, (uint16_t)i);
    return s;
}

void ebpfMonSteadyRecordsFree(ebpfMonSteadyRecords *s)
{
    if (s)
        free(s->type);
    free(s);
}

/* A number of at most 8 bytes. "other", if the field does not exist; ~0: it cannot be read. */
static uint64_t readFieldNumber(const ebpfMonSteadyRecords *s, uint64_t addr, const ebpfMonField *f, uint64_t other)
{
    uint64_t n = 0;

    if (!f)
        return other;
    return f->size > sizeof(n) || ebpfMonMemRead(s->mem, addr + f->offset, &n, f->size) ? ~0ull : n;
}

/* Nonzero: the field is a link to somewhere, or cannot be read. */
static int isLink(const ebpfMonSteadyRecords *s, uint64_t addr, const ebpfMonField *f)
{
    int16_t type;

    return f && (ebpfMonMemRead(s->mem, addr + f->offset + s->cat->base.linkType, &type, sizeof(type)) ||
                 type != LAYOUT_LINK_CONSTANT);
}

int ebpfMonSteadyRecordsHas(const ebpfMonSteadyRecords *s, uint32_t index)
{
    const ebpfMonRecord *rec = &s->cat->rec[index];
    const RecType *t = &s->type[rec->rtype];
    uint64_t dset, disa, disv;

    if (!t->isKnown)
        return 0;
    dset = readFieldNumber(s, rec->addr, t->dset, 0);
    disa = readFieldNumber(s, rec->addr, t->disa, 0);
    disv = readFieldNumber(s, rec->addr, t->disv, 0);
    return (!t->hasSupports || (dset && (dset == t->soft[0] || dset == t->soft[1]))) && disa != ~0ull &&
           disv != ~0ull && disa != disv && readFieldNumber(s, rec->addr, t->pact, 0) == 0 &&
           readFieldNumber(s, rec->addr, t->simm, 0) == 0 && readFieldNumber(s, rec->addr, t->odly, 0) == 0 &&
           !isLink(s, rec->addr, t->sdis) && !isLink(s, rec->addr, t->siml);
}
