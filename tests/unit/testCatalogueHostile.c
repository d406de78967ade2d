/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ioc/catalogue.h with a process that only looks like an IOC. The test shares this memory with a child at one
 * address, so the child has at once all that the test writes here.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "ioc/catalogue.h"
#include "ioc/recordLinks.h"
#include "baseLinks.h"
#include "randomTest.h"

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

MAIN(testCatalogueHostile)
{
    testPlan(0);
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
    return testDone();
}
