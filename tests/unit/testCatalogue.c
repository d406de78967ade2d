/* SPDX-License-Identifier: BSD-3-Clause */
/* ioc/catalogue.h with a real softIoc. testCatalogueHostile.c tests hostile processes. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <aiRecord.h>
#include <calcRecord.h>
#include <waveformRecord.h>
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

MAIN(testCatalogue)
{
    testPlan(IOC_TESTS);
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
    return testDone();
}
