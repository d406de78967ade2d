/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/sweeps.h: the records that each scan list processes, and whether one look at the end of a pass can count
 * them. The IOC is this process: its memory has records, scan elements and lists in the layout of dbScan.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "ioc/baseLayout.h"
#include "watch/followed.h"
#include "watch/sweeps.h"

#define RECORDS 500
#define LISTS   3
#define LINKS   4

enum { PASSIVE, EVENT, IO_INTR, TEN_SECONDS, SECOND }; /* menuScan.dbd */
enum { SCAN, FLNK, OUT, FIELDS };

static struct {
    uint16_t scan;
    uint64_t spvt;
} record[RECORDS];
static struct layoutScanElement element[RECORDS];
static struct layoutScanList list[LISTS];
static uint32_t links[RECORDS][2 * LINKS];
static ebpfMonRecord rec[RECORDS];
static ebpfMonRecType type = { .name = "calc", .fieldCount = FIELDS, .valField = -1, .records = 1 };
static struct ebpfMonRecState state[RECORDS];

static ebpfMonField field[FIELDS] = {
    { .name = "SCAN", .type = ebpfMonDbfMenu }, { .name = "FLNK", .type = ebpfMonDbfFwdlink },
    { .name = "OUT", .type = ebpfMonDbfOutlink },
};
static ebpfMonCatalogue cat = { .rec = rec, .rtype = &type, .rtypes = 1, .field = field, .fields = FIELDS };
static ebpfMonBinary core;
static ebpfMonFollowed followed;
static ebpfMonTarget ioc;
static uint8_t how[RECORDS];
static ebpfMonClosures *closures;

static void begin(uint32_t count)
{
    memset(record, 0, sizeof(record));
    memset(rec, 0, sizeof(rec));
    memset(&ioc, 0, sizeof(ioc));
    memset(&followed, 0, sizeof(followed));
    ioc.followed = &followed;
    memset(state, 0, sizeof(state));
    type.stamps = EBPFMON_STAMPS_BASE;
    cat.count = count;
    cat.common.spvt = offsetof(__typeof__(record[0]), spvt);
    field[SCAN].offset = offsetof(__typeof__(record[0]), scan);
    for (uint32_t i = 0; i < count; i++) {
        rec[i].addr = (uint64_t)(uintptr_t)&record[i];
        rec[i].to = links[i];
        rec[i].fwd = UINT32_MAX;
    }
    memset(list, 0, sizeof(list));
    memset(element, 0, sizeof(element));
    for (uint32_t i = 0; i < LISTS; i++)
        list[i].lock = 0x1000 * (LISTS - i); /* the last one first */
    memset(how, 0, sizeof(how));
    ioc.cat = &cat;
    ioc.how = how;
    ioc.recState = state;
    ioc.followed->att.core = &core;
    ioc.followed->mem = ebpfMonMemNew(getpid());
}

static void end(ebpfMonSweepPlan *plan)
{
    ebpfMonSweepPlanFree(plan);
    ebpfMonClosuresFree(closures);
    closures = NULL;
    ebpfMonMemFree(ioc.followed->mem);
}

/* Record "i" is scanned in a list, behind those that are in it already. */
static void scan(uint32_t i, unsigned inList, uint16_t how)
{
    struct layoutList *l = &list[inList].list;
    uint64_t at = (uint64_t)(uintptr_t)&element[i];

    record[i].scan = how;
    record[i].spvt = at;
    element[i] = (struct layoutScanElement){ .node.prev = l->last, .pscan_list = (uint64_t)(uintptr_t)&list[inList],
                                             .precord = rec[i].addr };
    if (l->last)
        ((struct layoutScanElement *)(uintptr_t)l->last)->node.next = at;
    else
        l->first = at;
    l->last = at;
    l->count++;
}

/* A link of "from" by this field makes "to" process. */
static void processBy(uint32_t from, uint32_t to, uint32_t by)
{
    uint32_t n = rec[from].toCount, fields[LINKS];

    memcpy(fields, links[from] + n, n * sizeof(*fields));
    links[from][n] = to;
    fields[n] = by;
    rec[from].toCount = n + 1;
    if (by == FLNK)
        rec[from].fwd = to;
    memcpy(links[from] + n + 1, fields, (n + 1) * sizeof(*fields));
}

static ebpfMonSweepPlan *make(int isSerial)
{
    uint32_t start[RECORDS + 1] = { 0 }, to[RECORDS * LINKS], edges = 0;

    for (uint32_t i = 0; i < cat.count; i++) {
        start[i] = edges;
        for (uint32_t k = 0; k < rec[i].toCount; k++)
            to[edges++] = rec[i].to[k];
    }
    start[cat.count] = edges;
    closures = ebpfMonClosuresMake(cat.count, start, to, 4 * RECORDS, 100);
    return ebpfMonSweepPlanMake(&ioc, closures, isSerial);
}

/* "0 1 2" */
static const char *place(uint32_t first, uint32_t len, char buf[200])
{
    buf[0] = 0;
    for (uint32_t i = first; i < first + len && i < closures->count && strlen(buf) < 190; i++)
        sprintf(buf + strlen(buf), "%s%u", i > first ? " " : "", closures->list[i]);
    return buf;
}

/* How many of the next records are in the same stretch: "2 1 0" */
static const char *ahead(uint32_t first, uint32_t len, char buf[200])
{
    buf[0] = 0;
    for (uint32_t i = first; closures->ahead && i < first + len && i < closures->count && strlen(buf) < 190; i++)
        sprintf(buf + strlen(buf), "%s%u", i > first ? " " : "", closures->ahead[i]);
    return buf;
}

static void testLists(void)
{
    uint32_t before;
    ebpfMonSweepPlan *plan;
    char text[200];

    begin(9);
    scan(0, 0, SECOND);
    scan(3, 1, TEN_SECONDS);
    scan(5, 0, SECOND);
    processBy(0, 1, FLNK);
    processBy(1, 2, FLNK);
    processBy(3, 4, FLNK);
    processBy(4, 5, FLNK); /* this record is not passive, so a forward link does not make it process */
    plan = make(1);
    before = closures->list ? 9 : 0;
    testOk(plan && plan->listCount == 2 && plan->fits, "two scan lists are found");
    testOk1(plan->list[0].mutex == list[1].lock && plan->list[1].mutex == list[0].lock);
    testOk(strcmp(place(plan->list[0].first, plan->list[0].len, text), "3 4") == 0,
           "the first list has its records: %s", text);
    testOk(strcmp(place(plan->list[1].first, plan->list[1].len, text), "0 1 2 5") == 0,
           "the second list has its records: %s", text);
    testOk(strcmp(ahead(plan->list[0].first, plan->list[0].len, text), "1 0") == 0 &&
               strcmp(ahead(plan->list[1].first, plan->list[1].len, text), "2 1 0 0") == 0,
           "forward links to passive records make stretches");
    testOk(strcmp(ahead(plan->groupFirst[plan->group[4]], 3, text), "0 0 0") == 0 &&
               strcmp(ahead(0, 9, text), "0 0 0 0 0 0 0 0 0") == 0, "only lists have them");
    testOk(plan->list[0].first >= before, "the lists stand behind the closures");
    testOk1(plan->group[0] == plan->group[2] && plan->group[3] == plan->group[5] && plan->group[0] != plan->group[3]);
    testOk1(plan->group[6] == 6 && plan->groupLen[6] == 0);
    testOk(strcmp(place(plan->groupFirst[plan->group[4]], plan->groupLen[plan->group[4]], text), "3 4 5") == 0,
           "a group is what links connect, whether or not they process: %s", text);
    testOk1(!plan->pays);
    end(plan);
}

/* A link of a record in another list makes a record process. The field tells how. */
static void testShared(const char *what, uint32_t by, uint16_t how, int fits)
{
    ebpfMonSweepPlan *plan;

    begin(4);
    scan(0, 0, SECOND);
    if (how != PASSIVE)
        scan(2, 1, how);
    processBy(0, 1, FLNK);
    processBy(1, 2, by);
    processBy(2, 3, FLNK);
    plan = make(1);
    testOk(plan && plan->fits == fits && plan->isShared[2] == !fits, "%s: %s", what, fits ? "fits" : "does not fit");
    end(plan);
}

static void testTwoRoots(void)
{
    ebpfMonSweepPlan *plan;

    begin(5);
    scan(0, 0, SECOND);
    scan(1, 0, SECOND);
    processBy(0, 2, FLNK);
    processBy(1, 2, FLNK);
    processBy(2, 3, FLNK);
    plan = make(1);
    testOk(!plan->fits && plan->isShared[2] && !plan->isShared[0] && !plan->isShared[1] && !plan->isShared[4],
           "two roots of one list process a record twice in a pass");
    end(plan);

    begin(5);
    scan(0, 0, SECOND);
    processBy(0, 1, FLNK);
    processBy(0, 2, FLNK);
    processBy(1, 3, FLNK);
    processBy(2, 3, FLNK);
    plan = make(1);
    testOk(plan->fits && plan->list[0].len == 4, "a root that is reached by two ways is listed once");
    end(plan);
}

static void testJudgement(void)
{
    ebpfMonSweepPlan *plan;

    begin(2);
    scan(0, 0, EVENT);
    scan(1, 1, SECOND);
    plan = make(0);
    testOk(!plan->fits && plan->isShared[0] && !plan->isShared[1],
           "a list that two threads may scan at a time cannot be swept");
    end(plan);
    begin(2);
    scan(0, 0, IO_INTR);
    plan = make(1);
    testOk(plan->fits, "a list that one thread scans can be swept");
    end(plan);
    begin(2);
    scan(0, 0, SECOND);
    ioc.followed->trapped = 1;
    plan = make(1);
    testOk(!plan->fits, "a record that only the trap counts prevents a sweep");
    end(plan);
    begin(2);
    scan(0, 0, SECOND);
    ioc.followed->trapped = ioc.followed->budget.noTrap = 1;
    type.stamps = EBPFMON_STAMPS_NOT;
    plan = make(1);
    testOk(plan->fits, "unless the budget forbids the trap: then it is marked");
    end(plan);
    begin(2);
    scan(0, 0, SECOND);
    type.stamps = EBPFMON_STAMPS_UNKNOWN;
    plan = make(1);
    testOk(!plan->fits, "a record type that is not Base's prevents a sweep");
    end(plan);
    begin(2);
    scan(0, 0, SECOND);
    type.stamps = EBPFMON_STAMPS_SEEN;
    plan = make(1);
    testOk(plan->fits, "… but not after a trial in which its time stamps showed all");
    end(plan);
}

/* Records of a list whose last one does not tell of all. */
static void testNoStretch(const char *what, uint32_t by, uint16_t flags, uint32_t another, int isScanned)
{
    ebpfMonSweepPlan *plan;
    char text[200];

    begin(6);
    scan(0, 0, SECOND);
    processBy(0, 1, by);
    processBy(1, 2, FLNK);
    rec[1].flags = flags;
    if (isScanned)
        scan(1, 0, SECOND);
    if (another)
        processBy(0, another, OUT);
    plan = make(1);
    testOk(plan && plan->listCount == 1 && ahead(plan->list[0].first, 1, text)[0] == '0', "no stretch: %s", what);
    end(plan);
}

static void testPays(const char *what, uint32_t roots, uint32_t length, uint32_t by, int pays)
{
    ebpfMonSweepPlan *plan;

    begin(roots * length);
    for (uint32_t i = 0; i < roots * length; i++) {
        if (i % length == 0)
            scan(i, 0, SECOND);
        if (i % length + 1 < length)
            processBy(i, i + 1, by);
    }
    plan = make(1);
    testOk(plan && plan->pays == pays, "%s: %s", what, pays ? "pays" : "does not pay");
    end(plan);
}

/* What a thread looks at while it holds a lock set: its closure, or the whole group. */
static void testLongest(void)
{
    ebpfMonSweepPlan *plan;

    begin(8);
    scan(0, 0, SECOND);
    processBy(0, 1, FLNK);
    processBy(2, 3, FLNK);
    processBy(3, 4, FLNK);
    plan = make(1);
    testOk(plan->longest == 3, "the longest look is at a chain that no list scans: %u", plan->longest);
    end(plan);
    begin(8);
    scan(0, 0, SECOND);
    scan(2, 0, SECOND);
    scan(4, 1, TEN_SECONDS);
    processBy(0, 1, FLNK);
    processBy(2, 3, FLNK);
    processBy(4, 5, FLNK);
    processBy(5, 2, FLNK); /* connects two lists */
    plan = make(1);
    testOk(plan->longest == 4, "… or at a group: %u", plan->longest);
    end(plan);
}

static void testUnreadable(void)
{
    ebpfMonSweepPlan *plan;

    begin(3);
    scan(0, 0, SECOND);
    record[1].spvt = 16; /* a page that cannot be read */
    plan = make(1);
    testOk(!plan, "a record whose list cannot be read is not taken for one that is in none");
    end(plan);
}

MAIN(testSweepPlan)
{
    testPlan(42);
    testLists();
    testShared("a forward link to a passive record", FLNK, PASSIVE, 1);
    testShared("a forward link to a scanned record", FLNK, SECOND, 1);
    testShared("an output link to PROC of a scanned record", OUT, SECOND, 0);
    testShared("an output link to a passive record", OUT, PASSIVE, 1);
    testTwoRoots();
    testLongest();
    testUnreadable();
    testJudgement();
    testNoStretch("an output link", OUT, 0, 0, 0);
    testNoStretch("a time stamp that need not change", FLNK, EBPFMON_REC_TSE, 0, 0);
    testNoStretch("two links lead to the second record", FLNK, 0, 1, 0);
    testNoStretch("the first record processes a third one, too", FLNK, 0, 3, 0);
    testNoStretch("the second record is scanned, too", FLNK, 0, 0, 1);
    testPays("six short chains", 6, 1, FLNK, 1);
    testPays("five short chains", 5, 1, FLNK, 0);
    testPays("ten chains of four", 10, 4, OUT, 1);
    testPays("ten chains of ten without stretches", 10, 10, OUT, 0);
    testPays("ten chains of ten", 10, 10, FLNK, 1);
    testPays("eight chains of sixty", 8, 60, FLNK, 0);
    testPays("four chains of ten", 4, 10, FLNK, 0);
    for (int i = 0; i < 4; i++) { /* nothing to plan */
        ebpfMonSweepPlan *plan;

        begin((uint32_t)i);
        plan = make(1);
        testOk(plan && plan->listCount == 0 && plan->fits && !plan->pays, "records in no list are not swept: %d", i);
        end(plan);
    }
    return testDone();
}
