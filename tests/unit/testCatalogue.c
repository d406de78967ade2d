/* SPDX-License-Identifier: BSD-3-Clause */
#include <aiRecord.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <waveformRecord.h>

#include <calcRecord.h>
#include <dbBase.h>
#include <dbChannel.h>
#include <dbCommon.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "code/image.h"
#include "ioc/baseLayout.h"
#include "ioc/catalogue.h"
#include "ioc/recordLinks.h"
#include "softIoc.h"
#include "baseLinks.h"
#include "randomTest.h"

/* --- Catalogue --- */

/* ioc/catalogue.h with a real softIoc. testCatalogue.c tests hostile processes. */

#define IOC_TESTS   50 /* the tests that need a softIoc */
#define LARGE       100000
#define LARGE_LIMIT 2.0 /* s; it takes a tenth, but the machine may be busy */
#define DEADLINE    120.0

static char  folder[64] = "/tmp/ebpfMonXXXXXX", database[80], more[80];

static double now(void)
{
    return (double)epicsMonotonicGet() * 1e-9;
}

static void tell(const char *what, const char *file)
{
    if (dprintf(iocStdin, what, file) < 0)
        testAbort("the softIoc does not listen");
}

static ebpfMonImage waitForImage(void)
{
    ebpfMonImageCache *cache = ebpfMonImageCacheNew();
    ebpfMonImage image = { 0 };
    double end = now() + DEADLINE;

    while (ebpfMonImageRead(cache, ioc, &image) && now() < end)
        epicsThreadSleep(0.02);
    if (!image.pdbbase)
        testAbort("the softIoc does not come up");
    image.core = NULL; /* an error of the cache, which does not stay */
    ebpfMonImageCacheFree(cache);
    return image;
}

static int waitForInit(const ebpfMonImage *image)
{
    double end = now() + DEADLINE;
    int up = 0;

    while (now() < end && (ebpfMonMemReadNow(ioc, image->interruptAccept, &up, sizeof(up)) || !up))
        epicsThreadSleep(0.02);
    return up;
}

/* Waits until the probe has counted this number of nodes. Returns the last count. */
static long waitForNodes(ebpfMonMem *mem, const ebpfMonImage *image, long nodes)
{
    double end = now() + DEADLINE;
    long n;

    while ((ebpfMonMemFlush(mem), n = ebpfMonCatalogueCountNodes(mem, image->pdbbase)) != nodes && now() < end)
        epicsThreadSleep(0.02);
    return n;
}

static void writeFile(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    if (!file || fputs(text, file) < 0 || fclose(file))
        testAbort("%s cannot be written", path);
}

static const char smallDb[] =
    "record(ai, \"t:ai\") { alias(\"t:aiAlias\") field(INP, \"t:ao PP\") field(FLNK, \"t:calc\") }\n"
    "record(ao, \"t:ao\") { field(OUT, \"t:bo.PROC\") }\n"
    "record(bo, \"t:bo\") { field(OUT, \"t:mbbo NPP\") }\n"
    "record(calc, \"t:calc\") { field(INPA, \"t:ai NPP\") field(INPB, \"t:ao.VAL PP MS\") field(FLNK, \"t:fan\") }\n"
    "record(fanout, \"t:fan\") { field(LNK1, \"t:lo\") field(LNK2, \"t:lo\") field(LNK3, \"t:self\") }\n"
    "record(longout, \"t:lo\") { field(OUT, \"t:li PP\") }\n"
    "record(longin, \"t:li\") { field(TSE, \"-2\") field(INP, \"t:lo CP\") }\n"
    "record(stringin, \"t:si\") { field(TSEL, \"t:ai.TIME\") field(FLNK, \"no:such:record\") }\n"
    "record(mbbo, \"t:mbbo\") { field(FLNK, \"t:aiAlias\") field(TSE, \"0\") }\n"
    "record(seq, \"t:seq\") { field(DOL1, \"t:li PP\") field(LNK1, \"t:ao PP\") field(LNK2, \"t:lo CA\") }\n"
    "record(ai, \"t:self\") { field(FLNK, \"t:self\") field(INP, \"5\") }\n"
    "alias(\"t:calc\", \"t:calcAlias\")\n";
#define SMALL_NODES 13

static const char moreDb[] =
    "record(waveform, \"t:wf\") { field(FTVL, \"DOUBLE\") field(NELM, \"10\") field(INP, \"t:fan NPP\")"
    " field(FLNK, \"t:calcAlias.PROC\") }\n"
    "record(aSub, \"t:asub\") { field(INPA, \"t:wf PP\") field(OUTA, \"t:ai.PROC CA\") field(TSE, \"-1\") }\n";
#define MORE_NODES 2

/* Which record makes which process, in the order of the link fields of the record type. */
static const struct {
    const char *name, *type;
    const char *to[4];
    int tse;
} expected[] = {
    { "t:ai", "ai", { "t:calc", "t:ao" }, 0 },
    { "t:ao", "ao", { "t:bo" }, 0 },
    { "t:bo", "bo", { NULL }, 0 },
    { "t:calc", "calc", { "t:fan", "t:ao" }, 0 },
    { "t:fan", "fanout", { "t:lo", "t:lo", "t:self" }, 0 },
    { "t:lo", "longout", { "t:li" }, 0 },
    { "t:li", "longin", { NULL }, 1 },
    { "t:si", "stringin", { NULL }, 1 },
    { "t:mbbo", "mbbo", { "t:ai" }, 0 },
    { "t:seq", "seq", { "t:li", "t:ao" }, 0 },
    { "t:self", "ai", { "t:self" }, 0 },
    { "t:wf", "waveform", { "t:calc" }, 0 },
    { "t:asub", "aSub", { "t:wf" }, 1 },
};
#define RECORDS ((long)(sizeof(expected) / sizeof(expected[0])))

static void testEdges(const ebpfMonCatalogue *cat)
{
    for (long k = 0; k < RECORDS; k++) {
        long i = ebpfMonCatalogueFind(cat, expected[k].name);
        uint32_t n = 0;
        int ok = i >= 0 && strcmp(cat->rtype[cat->rec[i].rtype].name, expected[k].type) == 0;

        for (; ok && n < 4 && expected[k].to[n]; n++)
            ok = n < cat->rec[i].toCount
                && strcmp(ebpfMonCatalogueName(cat, cat->rec[i].to[n]), expected[k].to[n]) == 0;
        testOk(ok && n == cat->rec[i].toCount, "%s is of type %s and processes %u", expected[k].name,
            expected[k].type, n);
        testOk(i >= 0 && !(cat->rec[i].flags & EBPFMON_REC_TSE) == !expected[k].tse, "%s: time stamp %s",
            expected[k].name, expected[k].tse ? "of its own" : "with each processing");
    }
}

static void testFields(const ebpfMonCatalogue *cat)
{
#define FIELD(type, member, name, dbf) \
    { #type, name, offsetof(type##Record, member), dbf, sizeof(((type##Record *)0)->member) }
    static const struct {
        const char *type, *name;
        size_t offset;
        int dbf;
        size_t size;
    } field[] = {
        FIELD(ai, name, "NAME", ebpfMonDbfString), FIELD(ai, val, "VAL", ebpfMonDbfDouble),
        FIELD(ai, egu, "EGU", ebpfMonDbfString), FIELD(ai, flnk, "FLNK", ebpfMonDbfFwdlink),
        FIELD(ai, inp, "INP", ebpfMonDbfInlink), FIELD(ai, scan, "SCAN", ebpfMonDbfMenu),
        FIELD(calc, inpl, "INPL", ebpfMonDbfInlink), FIELD(calc, calc, "CALC", ebpfMonDbfString),
        FIELD(waveform, nord, "NORD", ebpfMonDbfUlong), FIELD(waveform, time, "TIME", ebpfMonDbfNoaccess),
    };
    const ebpfMonCommon *c = &cat->common;
    const ebpfMonField *f;
    long wf = ebpfMonCatalogueFind(cat, "t:wf"), wrong = 0;

    testOk(c->time == offsetof(struct dbCommon, time) && c->pact == offsetof(struct dbCommon, pact)
        && c->ppn == offsetof(struct dbCommon, ppn) && c->lset == offsetof(struct dbCommon, lset)
        && c->disp == offsetof(struct dbCommon, disp) && c->sevr == offsetof(struct dbCommon, sevr)
        && c->stat == offsetof(struct dbCommon, stat) && c->tse == offsetof(struct dbCommon, tse)
        && c->tsel == offsetof(struct dbCommon, tsel), "dbCommon as in our own headers");
    for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
        long same = 0;

        for (uint16_t t = 0; t < cat->rtypes; t++)
            if (strcmp(cat->rtype[t].name, field[i].type) == 0
                && (f = ebpfMonCatalogueFieldNamed(cat, t, field[i].name)) != NULL)
                same += f->offset == field[i].offset && f->type == field[i].dbf && f->size == field[i].size
                    && f->rtype == t;
        if (same != 1 && ++wrong)
            testDiag("%s.%s differs", field[i].type, field[i].name);
    }
    testOk(wrong == 0, "fields of ai, calc and waveform as in our own headers");
    wrong = 0;
    for (uint32_t i = 0; i < cat->fields; i++)
        wrong += ebpfMonCatalogueField(cat, cat->field[i].addr) != &cat->field[i]
            || ebpfMonCatalogueField(cat, cat->field[i].addr + 1) != NULL;
    testOk(wrong == 0, "%u fields are found by address", cat->fields);
    f = wf < 0 ? NULL : &cat->field[cat->rtype[cat->rec[wf].rtype].valField];
    testOk(f && f->arrayPtr == offsetof(waveformRecord, bptr) && f->arrayCount == offsetof(waveformRecord, nord)
        && cat->rtype[f->rtype].recSize == sizeof(waveformRecord), "the array of waveform");
    testOk(cat->base->link.pvt == offsetof(struct link, value.pv_link.pvt)
        && cat->base->link.pvlMask == offsetof(struct link, value.pv_link.pvlMask)
        && cat->base->link.type == offsetof(struct link, type)
        && EBPFMON_DbChannel_addr == offsetof(dbChannel, addr) && EBPFMON_DbAddr_pfldDes == offsetof(dbAddr, pfldDes)
        && EBPFMON_FldDes_offset == offsetof(dbFldDes, offset)
        && EBPFMON_RecordNode_flags == offsetof(dbRecordNode, flags)
        && EBPFMON_RecordType_rec_size == offsetof(dbRecordType, rec_size)
        && EBPFMON_RecordType_recList == offsetof(dbRecordType, recList)
        && EBPFMON_RECORDTYPELIST == offsetof(dbBase, recordTypeList), "the layout is that of our own headers");
}

static void testFind(const ebpfMonCatalogue *cat)
{
    long ai = ebpfMonCatalogueFind(cat, "t:ai"), wrong = 0;

    testOk(cat->count == RECORDS && cat->aliases == 2 && cat->nameCount == RECORDS + 2, "%u records, %u aliases",
        cat->count, cat->aliases);
    testOk(ai >= 0 && ebpfMonCatalogueFind(cat, "t:aiAlias") == ai
        && ebpfMonCatalogueFind(cat, "t:calcAlias") == ebpfMonCatalogueFind(cat, "t:calc")
        && cat->rtype[cat->rec[ai].rtype].records == 2, "aliases lead to their records");
    testOk(ebpfMonCatalogueFind(cat, "t:") == -1 && ebpfMonCatalogueFind(cat, "") == -1
        && ebpfMonCatalogueFind(cat, "t:ai.VAL") == -1, "a name that does not exist is not found");
    for (uint32_t i = 0; i < cat->count; i++)
        wrong += ebpfMonCatalogueFindAddr(cat, cat->rec[i].addr) != (long)i
            || ebpfMonCatalogueFindAddr(cat, cat->rec[i].addr + 1) != -1
            || ebpfMonCatalogueFind(cat, ebpfMonCatalogueName(cat, i)) != (long)i;
    testOk(wrong == 0 && ebpfMonCatalogueFindAddr(cat, 0) == -1
        && ebpfMonCatalogueFindAddr(cat, UINT64_MAX) == -1, "all records are found by address and by name");
}

static void readLinks(ebpfMonMem *mem, ebpfMonCatalogue *cat, uint32_t index)
{
    ebpfMonRecordLinks *links = ebpfMonRecordLinksRead(mem, cat, index);

    if (!links)
        testAbort("out of memory");
    ebpfMonRecordLinksExchange(cat, links);
    ebpfMonRecordLinksFree(links);
}

/* Until the links are exchanged, the catalogue has its own links. */
static void testExchange(ebpfMonMem *mem, ebpfMonCatalogue *cat)
{
    long fan = ebpfMonCatalogueFind(cat, "t:fan");
    ebpfMonRecordLinks *links = ebpfMonRecordLinksRead(mem, cat, (uint32_t)fan);
    uint32_t *to = cat->rec[fan].to;

    testOk(links && !ebpfMonRecordLinksDiffer(cat, links), "links that did not change do not differ");
    cat->rec[fan].toCount--;
    testOk(links && ebpfMonRecordLinksDiffer(cat, links) && cat->rec[fan].to == to,
           "a link that is missing is a difference");
    ebpfMonRecordLinksExchange(cat, links);
    testOk(cat->rec[fan].to != to && cat->rec[fan].toCount == 3, "after the exchange the catalogue has what was read");
    ebpfMonRecordLinksFree(links);
}

static void testSmall(void)
{
    ebpfMonImage image = waitForImage();
    ebpfMonMem *mem = ebpfMonMemNew(ioc);
    ebpfMonCatalogue *cat;
    char why[200] = "?";

    writeFile(database, smallDb);
    writeFile(more, moreDb);
    testOk(waitForNodes(mem, &image, 0) == 0, "there is no record yet");
    tell("dbLoadRecords(\"%s\")\n", database);
    testOk(waitForNodes(mem, &image, SMALL_NODES) == SMALL_NODES, "the probe sees %d nodes", SMALL_NODES);
    tell("dbLoadRecords(\"%s\")\n", more);
    testOk(waitForNodes(mem, &image, SMALL_NODES + MORE_NODES) == SMALL_NODES + MORE_NODES,
           "the probe sees the nodes that were added");
    tell("iocInit%s\n", "");
    testOk(waitForInit(&image), "iocInit is done");
    ebpfMonMemFlush(mem);
    cat = ebpfMonCatalogueRead(mem, image.pdbbase, why, sizeof(why));
    testOk(cat && !why[0], "the catalogue is read%s%s", why[0] ? ": " : "", why);
    if (!cat)
        testAbort("nothing to look at");
    readLinks(mem, cat, EBPFMON_ALL_RECORDS);
    testFind(cat);
    testFields(cat);
    testEdges(cat);
    readLinks(mem, cat, (uint32_t)ebpfMonCatalogueFind(cat, "t:fan"));
    testOk(!ebpfMonRecordLinksRead(mem, cat, cat->count), "a record that does not exist has no links");
    testOk(cat->rec[ebpfMonCatalogueFind(cat, "t:fan")].toCount == 3, "the links of one record are read again");
    testExchange(mem, cat);
    ebpfMonCatalogueHold(cat);
    ebpfMonCatalogueRelease(cat);
    testOk(ebpfMonCatalogueFind(cat, "t:ai") >= 0, "the catalogue exists as long as somebody holds it");
    ebpfMonCatalogueRelease(cat);
    stopIoc();
    ebpfMonMemFlush(mem);
    testOk(!ebpfMonCatalogueRead(mem, image.pdbbase, why, sizeof(why)),
           "nothing can be read from an IOC that has ended");
    ebpfMonMemFree(mem);
}

static void testLarge(void)
{
    ebpfMonImage image = waitForImage();
    ebpfMonMem *mem = ebpfMonMemNew(ioc);
    FILE *file = fopen(database, "w");
    static const char *const type[] = { "ai", "ao", "calc", "longin", "stringin" };
    double best = 1e9, links = 1e9;
    uint32_t edges = 0, wrong = 0;
    char why[200] = "", name[32];

    for (int i = 0; file && i < LARGE; i++) /* chains of ten */
        fprintf(file, i % 10 < 9 ? "record(%s, \"large:%06d\") { field(FLNK, \"large:%06d\") }\n"
                                 : "record(%s, \"large:%06d\") {}\n", type[i % 5], i, i + 1);
    if (!file || fclose(file))
        testAbort("%s cannot be written", database);
    tell("dbLoadRecords(\"%s\")\niocInit\n", database);
    testOk(waitForNodes(mem, &image, LARGE) == LARGE && waitForInit(&image), "%d records are up", LARGE);
    for (int run = 0; run < 3; run++) {
        double t0, t1;
        ebpfMonCatalogue *cat;

        ebpfMonMemFlush(mem);
        t0 = now();
        cat = ebpfMonCatalogueRead(mem, image.pdbbase, why, sizeof(why));
        t1 = now();
        if (!cat)
            testAbort("not read: %s", why);
        readLinks(mem, cat, EBPFMON_ALL_RECORDS);
        testDiag("%d records: catalogue %.0f ms, links %.0f ms", LARGE, (t1 - t0) * 1e3, (now() - t1) * 1e3);
        links = now() - t1 < links ? now() - t1 : links;
        best = t1 - t0 < best ? t1 - t0 : best;
        for (int i = 0; run == 0 && i < LARGE; i++) {
            snprintf(name, sizeof(name), "large:%06d", i);

            long at = ebpfMonCatalogueFind(cat, name);

            wrong += at < 0;
            edges += at < 0 ? 0 : cat->rec[at].toCount;
        }
        ebpfMonCatalogueRelease(cat);
    }
    testOk(wrong == 0 && edges == LARGE / 10 * 9, "all names, and %u links", edges);
    testOk(best < LARGE_LIMIT && links < LARGE_LIMIT,
        "in %.0f ms, and the links in %.0f ms", best * 1e3, links * 1e3);
    stopIoc();
    ebpfMonMemFree(mem);
}

static void runCatalogue(void)
{
    if (!mkdtemp(folder))
        testAbort("no folder in /tmp");
    snprintf(database, sizeof(database), "%s/x.db", folder);
    snprintf(more, sizeof(more), "%s/more.db", folder);
    signal(SIGPIPE, SIG_IGN); /* of an IOC that died early */
    if (startIoc(NULL, NULL) == 0) {
        testSmall();
        if (startIoc(NULL, NULL))
            testAbort("no second softIoc");
        testLarge();
    } else {
        testSkip(IOC_TESTS, "no softIoc: EPICS_BASE and EPICS_HOST_ARCH name none");
    }
    unlink(database);
    unlink(more);
    rmdir(folder);
}

/* --- CatalogueHostile --- */

/*
 * ioc/catalogue.h with a process that only looks like an IOC. The test shares this memory with a child at one
 * address, so the child has at once all that the test writes here.
 */

#define ARENA   (256 * 1024)
#define PAGE    4096
#define BLOCK   32768   /* of the reader's cache */
#define TYPES   3
#define RECS    20
#define RECSIZE 256
#define ALIKE   2000    /* records with one name */
#define SHARED  40      /* types that share the fields of one */
#define LINK_AT 128     /* offset of FLNK in a record */
#define ROUNDS  2000
#define RACES   300
#define LIMIT   1.0     /* s; longest CPU time of one reading */
#define NOWHERE (at(f) + ARENA) /* the page there cannot be read */

static const char *const fieldName[] = {"NORD", "PACT", "PPN", "LSET", "DISP", "SEVR", "STAT", "TSE",
                                        "TSEL", "FLNK", "VAL", "BPTR", "TIME", "SCAN", "SDIS", "PHAS", "PROC"};
#define FIELDS ((int)(sizeof(fieldName) / sizeof(fieldName[0])))
#define TIME   12 /* index of TIME */

/* The structs in the child's memory. */
typedef struct {
    uint64_t base; /* the variable pdbbase */
    struct {
        uint64_t skip[EBPFMON_RECORDTYPELIST / 8];
        struct layoutList types;
    } db;
    struct layoutRecordType type[TYPES];
    struct layoutFldDes field[TYPES][FIELDS];
    uint64_t pap[TYPES][FIELDS];
    struct layoutRecordNode node[TYPES][RECS];
    struct layoutDbChannel chan[TYPES][RECS];
    unsigned char rec[TYPES][RECS][RECSIZE];
    char typeName[TYPES][16], name[TYPES][RECS][16], fieldName[FIELDS][16];
    int stop; /* tells the child to stop */
} fake;

static fake *f; /* begin of the arena; the rest of the arena is zero, and no memory follows it */
static char *image; /* copy of the whole arena without damage */
static pid_t child;
static int   childIn;
static ebpfMonMem *mem;

static uint64_t at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void link2(struct layoutList *list, void *first, size_t size, int count)
{
    for (int i = 0; i < count; i++) {
        struct layoutNode *n = (struct layoutNode *)((char *)first + (size_t)i * size);

        n->prev = i ? at(n) - size : 0;
        n->next = i + 1 < count ? at(n) + size : 0;
    }
    list->first = at(first);
    list->last = at(first) + size * (size_t)(count - 1);
    list->count = count;
}

static int typeOf(const char *field)
{
    return strcmp(field, "FLNK") == 0 ? ebpfMonDbfFwdlink : strcmp(field, "SDIS") == 0 ? ebpfMonDbfInlink :
           strcmp(field, "SCAN") == 0 ? ebpfMonDbfMenu : ebpfMonDbfNoaccess;
}

static void build(void)
{
    memset(f, 0, ARENA);
    f->base = at(&f->db);
    link2(&f->db.types, f->type, sizeof(f->type[0]), TYPES);
    for (int t = 0; t < TYPES; t++) {
        sprintf(f->typeName[t], "type%d", t);
        f->type[t].name = at(f->typeName[t]);
        f->type[t].no_fields = (int16_t)FIELDS;
        f->type[t].papFldDes = at(f->pap[t]);
        f->type[t].rec_size = RECSIZE;
        for (int i = 0; i < FIELDS; i++) {
            struct layoutFldDes *d = &f->field[t][i];

            strcpy(f->fieldName[i], fieldName[i]);
            f->pap[t][i] = at(d);
            d->name = at(f->fieldName[i]);
            d->field_type = (uint32_t)typeOf(fieldName[i]);
            d->special = strcmp(fieldName[i], "VAL") ? 0 : EBPFMON_SPC_DBADDR;
            d->offset = (uint16_t)(strcmp(fieldName[i], "FLNK") ? i * 8 : LINK_AT);
            d->size = strcmp(fieldName[i], "FLNK") ? 8 : (int16_t)sizeof(struct layoutPvLink);
        }
        link2(&f->type[t].recList, f->node[t], sizeof(f->node[t][0]), RECS);
        for (int i = 0; i < RECS; i++) {
            struct layoutPvLink *link = (struct layoutPvLink *)(f->rec[t][i] + LINK_AT);

            sprintf(f->name[t][i], "R%d.%d", t, i);
            f->node[t][i].recordname = at(f->name[t][i]);
            f->node[t][i].precord = at(f->rec[t][i]);
            link->type = EBPFMON_LINK_DB;
            link->precord = at(f->rec[t][i]);
            link->pvt = at(&f->chan[t][i]);
            f->chan[t][i].addr.precord = at(f->rec[t][(i + 1) % RECS]);
            f->chan[t][i].addr.pfldDes = at(&f->field[t][0]);
        }
    }
    f->node[0][1].precord = f->node[0][0].precord; /* an alias */
    f->node[0][1].flags = EBPFMON_ISALIAS;
}

/* Changes one word of the structs. */
static void mutate(void)
{
    /* little is read in records, so mostly change the structs that lead to them */
    size_t words = (random64() % 4 ? offsetof(fake, rec) : offsetof(fake, stop)) / 8;
    uint64_t *word = (uint64_t *)f + random64() % words, *other = (uint64_t *)f + random64() % words;

    switch (random64() % 8) {
    case 0: *word = random64(); break;
    case 1: *word = 0; break;
    case 2: *word = at(f) + random64() % ARENA; break;
    case 3: *word = at(other); break;
    case 4: *word = random64() % 3000000; break;
    case 5: *word = UINT64_MAX << random64() % 64; break;
    case 6: *word = *other; break;
    default: *word ^= 1ull << random64() % 64; break;
    }
}

/* The child damages its structs again and again: it begins with each byte that it reads, and stops when f->stop is
 * set. */
static void childMain(int in)
{
    char c;

    while (read(in, &c, 1) == 1)
        for (unsigned n = 0; !__atomic_load_n(&f->stop, __ATOMIC_ACQUIRE); n++) {
            if (n % 16 == 0)
                memcpy(f, image, offsetof(fake, stop));
            mutate();
        }
    _exit(0);
}

static void startChild(void)
{
    int in[2];

    char *got = mmap(NULL, ARENA + 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    image = malloc(ARENA);
    /* Both ends of the arena are in the middle of a block that the reader reads at once. */
    f = (fake *)(got + BLOCK - at(got) % BLOCK + PAGE);
    if (got == MAP_FAILED || !image || pipe(in) || mprotect((char *)f + ARENA, PAGE, PROT_NONE))
        testAbort("no memory");
    build();
    memcpy(image, f, ARENA);
    child = fork();
    if (child == 0) {
        close(in[1]);
        seed ^= 0x5555;
        childMain(in[0]);
    }
    close(in[0]);
    childIn = in[1];
    mem = ebpfMonMemNew(child);
    if (child < 0 || !mem)
        testAbort("no child");
}

static double longest;
static uint32_t edges;
static char why[200];

/* CPU time of all threads, in seconds: another thread reads the memory. Not the time of day, which depends on what else
 * runs. */
static double readCpu(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Reads the catalogue, uses it, and releases it. Returns its number of records, or -1 if there is none. */
static long readIt(void)
{
    double begin = readCpu(), took;
    ebpfMonCatalogue *cat;
    long n = -1;

    ebpfMonMemFlush(mem);
    strcpy(why, "unset");
    cat = ebpfMonCatalogueRead(mem, at(&f->base), why, sizeof(why));
    edges = 0;
    if (cat) {
        ebpfMonRecordLinks *links = ebpfMonRecordLinksRead(mem, cat, EBPFMON_ALL_RECORDS);

        n = cat->count;
        ebpfMonRecordLinksExchange(cat, links);
        ebpfMonRecordLinksFree(links);
        for (uint32_t i = 0; i < cat->count; i++) {
            if (ebpfMonCatalogueFindAddr(cat, cat->rec[i].addr) != (long)i)
                n = -2;
            ebpfMonCatalogueFind(cat, ebpfMonCatalogueName(cat, i));
            edges += cat->rec[i].toCount;
            for (uint32_t k = 0; k < cat->rec[i].toCount; k++)
                if (cat->rec[i].to[k] >= cat->count)
                    n = -3;
        }
        ebpfMonCatalogueRelease(cat);
    }
    ebpfMonCatalogueCountNodes(mem, at(&f->base));
    took = readCpu() - begin;
    longest = took > longest ? took : longest;
    return n;
}

/* One damage: the catalogue is refused soon, and for the expected reason. */
#define REFUSED(what, says, ...) do { \
        memcpy(f, image, ARENA); \
        __VA_ARGS__; \
        longest = 0; \
        long n = readIt(); \
        testOk(n == -1 && strstr(why, says) && longest < LIMIT, "%s: %s", what, why); \
    } while (0)

/* One damage that looks as if there was no database yet. */
#define NOT_YET(what, ...) do { \
        memcpy(f, image, ARENA); \
        __VA_ARGS__; \
        testOk(readIt() == -1 && !why[0], "%s: there is no catalogue yet", what); \
    } while (0)

/* The reader of memory, at the end of the arena. */
static void testMemory(void)
{
    char buf[64], *end = (char *)f + ARENA;

    ebpfMonMemFlush(mem);
    memcpy(end - 8, "1234567", 8);
    testOk(!ebpfMonMemRead(mem, at(end) - 8, buf, 8) && !strcmp(buf, "1234567"),
           "the last bytes of the memory can be read");
    testOk(ebpfMonMemRead(mem, at(end) - 8, buf, 9) == -1 && ebpfMonMemRead(mem, at(end), buf, 1) == -1 &&
               ebpfMonMemReadNow(child, at(end) - 8, buf, 9) == -1 && !ebpfMonMemPtr(mem, at(end) - 4),
           "one byte more cannot");
    testOk(ebpfMonMemRead(mem, 0, buf, 8) == -1 && ebpfMonMemRead(mem, UINT64_MAX - 3, buf, 8) == -1
        && ebpfMonMemRead(mem, 1ull << 63, buf, 8) == -1 && !ebpfMonMemPtr(mem, 0), "addresses that do not exist");
    testOk(!ebpfMonMemStr(mem, at(end) - 8, buf, 8) && !strcmp(buf, "1234567"), "a string that just fits is read");
    testOk(ebpfMonMemStr(mem, at(end) - 8, buf, 7) == -1 && !buf[0], "a string that does not fit is not");
    end[-1] = '8';
    testOk(!ebpfMonMemStr(mem, at(end) - 8, buf, sizeof(buf)), "memory that was read is kept");
    ebpfMonMemFlush(mem);
    testOk(ebpfMonMemStr(mem, at(end) - 8, buf, sizeof(buf)) == -1 && !buf[0], "... until it is flushed");
    memcpy(f, image, ARENA);
}

/* Longer than others: each kind of damage is one call, and a table would hide what it does. */
static void testDamage(void)
{
    struct layoutRecordNode *node = f->node[1];
    struct layoutList *list = &f->type[1].recList;
    struct layoutPvLink *flnk = (struct layoutPvLink *)(f->rec[1][4] + LINK_AT);

    testOk(readIt() == TYPES * RECS - 1 && !why[0], "sound, it is read%s", why);
    testOk(edges == TYPES * RECS - 2, "%u links; the one to where an alias has its record is none", edges);
    flnk->type = EBPFMON_LINK_CA;
    testOk(readIt() > 0 && edges == TYPES * RECS - 3, "a link that is not a database link is not listed");
    flnk->type = EBPFMON_LINK_DB;
    testOk(ebpfMonCatalogueCountNodes(mem, at(&f->base)) == TYPES * RECS, "and the nodes are counted");

    REFUSED("a list that loops", "changed while it was read", node[RECS - 1].next = at(&node[0]));
    REFUSED("a node after itself", "changed while it was read", node[5].next = at(&node[5]));
    REFUSED("a list that loops, and a huge count", "changed while it was read",
        node[RECS - 1].next = at(&node[0]), list->count = 1999999);
    REFUSED("negative count", "cannot be read", list->count = -1);
    REFUSED("huge count", "cannot be read", list->count = INT32_MAX);
    REFUSED("count too large by one", "changed while it was read", list->count++);
    REFUSED("count too small by one", "changed while it was read", list->count--);
    REFUSED("next is unmapped", "changed while it was read", node[3].next = NOWHERE);
    REFUSED("next is no address", "changed while it was read", node[3].next = UINT64_MAX - 8);
    REFUSED("prev is wrong", "changed while it was read", node[3].prev = at(&node[1]));
    REFUSED("the first has a prev", "changed while it was read", node[0].prev = at(&node[1]));
    REFUSED("the list ends early", "changed while it was read", node[3].next = 0);
    REFUSED("name is unmapped", "has no readable name", node[3].recordname = NOWHERE);
    REFUSED("name is empty", "has no readable name", f->name[1][3][0] = 0);
    REFUSED("name without end", "has no readable name", memset((char *)f + ARENA - 1000, 'x', 1000),
        node[3].recordname = at(f) + ARENA - 1000);
    REFUSED("name without end, at the end of the memory", "has no readable name",
        memset((char *)f + ARENA - 20, 'x', 20),
        node[3].recordname = at(f) + ARENA - 20);
    REFUSED("node over the end of the memory", "changed while it was read", node[3].next = at(f) + ARENA - 8);

    REFUSED("types: loop", "changed while it was read",
        f->type[TYPES - 1].node.next = at(&f->type[0]), f->db.types.count = 4000);
    REFUSED("types: negative count", "does not point to a database", f->db.types.count = -5);
    REFUSED("types: huge count", "does not point to a database", f->db.types.count = INT32_MAX);
    REFUSED("types: count too large by one", "changed while it was read", f->db.types.count++);
    REFUSED("types: prev is wrong", "changed while it was read", f->type[1].node.prev = 0);
    REFUSED("types: count too small by one", "changed while it was read", f->db.types.count--);
    REFUSED("types: next is unmapped", "changed while it was read", f->type[0].node.next = NOWHERE);
    REFUSED("type's name is unmapped", "has no readable name", f->type[1].name = NOWHERE);
    REFUSED("type's name without end", "has no readable name", memset((char *)f + ARENA - 500, 'x', 500),
        f->type[1].name = at(f) + ARENA - 500);
    REFUSED("type's name is not printable", "has no readable name", f->typeName[1][2] = '\n');
    REFUSED("32767 fields", "cannot be believed", f->type[1].no_fields = 32767);
    REFUSED("negative number of fields", "cannot be believed", f->type[1].no_fields = -1);
    /* The list is copied to the zeros behind the struct, so the bytes after it are the same in each run. */
    REFUSED("more fields than there are", "cannot be read", memcpy(f + 1, f->pap[1], sizeof(f->pap[1])),
        f->type[1].papFldDes = at(f + 1), f->type[1].no_fields = EBPFMON_FIELDS_LIMIT);
    REFUSED("negative size", "cannot be believed", f->type[1].rec_size = -8);
    REFUSED("no size", "no record type is registered",
        f->type[0].rec_size = f->type[1].rec_size = f->type[2].rec_size = 0);
    REFUSED("fields are unmapped", "cannot be read", f->type[1].papFldDes = NOWHERE);
    REFUSED("a field is nowhere", "cannot be read", f->pap[1][4] = 0);
    REFUSED("a field has no type", "cannot be read", f->field[1][4].field_type = 99999);
    REFUSED("a field's name is long", "has no readable name", memset(f->fieldName[0], 'X', 64));
    REFUSED("no TIME", "has no field TIME", strcpy(f->fieldName[TIME], "TOME"));
    REFUSED("SEVR behind TIME", "lie too far apart", f->field[0][5].offset = LINK_AT + 8);
    REFUSED("the database is unmapped", "does not point to a database", f->base = NOWHERE);

    NOT_YET("no database", f->base = 0);
    NOT_YET("no types", f->db.types.count = 0);

    memcpy(f, image, ARENA); /* no record is counted twice, even if two types list it */
    f->type[2].recList = f->type[1].recList;
    testOk(readIt() == (TYPES - 1) * RECS - 1, "two types with one list");
    memcpy(f, image, ARENA);
    node[3].precord = 0;
    testOk(readIt() == TYPES * RECS - 2, "a record that is being loaded");
    memcpy(f, image, ARENA);
    for (int i = 0; i < RECS; i++) { /* only their links are read; these records then have none */
        f->chan[1][i].addr.precord = NOWHERE;
        node[i].precord = NOWHERE + 8 * (uint64_t)i;
    }
    testOk(readIt() == TYPES * RECS - 1, "records that are unmapped");
}

/* Types that share one table of fields, and all these fields may be arrays. This is small in the child's memory, and
 * large in ours. */
static void testShared(void)
{
    struct layoutRecordType *type;
    uint64_t *pap;

    memcpy(f, image, ARENA);
    pap = (uint64_t *)(f + 1);
    type = (struct layoutRecordType *)(pap + EBPFMON_FIELDS_LIMIT);
    for (int i = 0; i < EBPFMON_FIELDS_LIMIT; i++)
        pap[i] = at(&f->field[0][i % FIELDS]);
    for (int i = 0; i < FIELDS; i++)
        f->field[0][i].special = EBPFMON_SPC_DBADDR;
    for (int t = 0; t < SHARED; t++) {
        type[t] = f->type[0];
        type[t].papFldDes = at(pap);
        type[t].no_fields = EBPFMON_FIELDS_LIMIT;
        memset(&type[t].recList, 0, sizeof(type[t].recList));
    }
    link2(&f->db.types, type, sizeof(*type), SHARED);
    longest = 0;
    readIt();
    testOk(longest < LIMIT, "%d types with %d fields: %.1f ms, %s", SHARED, EBPFMON_FIELDS_LIMIT, longest * 1e3, why);
}

/* Many records with the same name, for which a table of names would be slow. */
static void testAlike(void)
{
    struct layoutRecordNode *node = (struct layoutRecordNode *)(f + 1);

    memcpy(f, image, ARENA);
    link2(&f->type[1].recList, node, sizeof(*node), ALIKE);
    for (int i = 0; i < ALIKE; i++) {
        node[i].recordname = at(f->name[1][0]);
        node[i].precord = NOWHERE + 8 * (uint64_t)i;
    }
    testOk(readIt() == -1 && strstr(why, "have the same name"), "%d records of one name: %s", ALIKE, why);
}

/* Damage that accumulates, up to eight times. */
static void testFuzz(void)
{
    int read = 0, quiet = 0, wrong = 0;

    longest = 0;
    for (int i = 0; i < ROUNDS; i++) {
        long n;

        if (i % 8 == 0)
            memcpy(f, image, ARENA);
        mutate();
        n = readIt();
        read += n >= 0;
        wrong += n < -1;
        quiet += n == -1 && !why[0];
    }
    testOk(wrong == 0, "%d of %d damaged databases read, %d refused, %d not there", read, ROUNDS,
        ROUNDS - read - quiet, quiet);
    testOk(longest < LIMIT, "the longest took %.1f ms", longest * 1e3);
}

/* The same, while the child changes the memory. */
static void testRace(void)
{
    int read = 0, wrong = 0;

    memcpy(f, image, ARENA);
    longest = 0;
    testOk(write(childIn, "m", 1) == 1, "the child process begins");
    for (int i = 0; i < RACES; i++) {
        long n = readIt();

        read += n >= 0;
        wrong += n < -1;
    }
    __atomic_store_n(&f->stop, 1, __ATOMIC_RELEASE);
    testOk(wrong == 0, "%d of %d read while they changed", read, RACES);
    testOk(longest < LIMIT, "the longest took %.1f ms", longest * 1e3);
}

static void runCatalogueHostile(void)
{
    startChild();
    testMemory();
    testDamage();
    testShared();
    testAlike();
    testFuzz();
    testRace();
    close(childIn);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    testOk(readIt() == -1, "nothing can be read from a process that has ended");
    ebpfMonMemFree(mem);
    free(image);
}

MAIN(testCatalogue)
{
    testPlan(0);
    runCatalogue();
    runCatalogueHostile();
    return testDone();
}
