/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "host/procInfo.h"
#include "query/queryIocs.h"
#include "shared/followedIocs.h"

/* --- probes --- */

/* Calls "each" for each IOC at which the query looks: the number under which the kernel part counts what it pays, and
 * the part of its probes that the kernel single-steps. 0 is the number of all IOCs for which there is no other, and of
 * other processes. */
typedef void (*ebpfMonQueryPayerFn)(void *arg, uint32_t iocId, unsigned payer, double stepped);

#define CHECK_NS (2 * EBPFMON_SECOND_NS) /* look whether the IOC has loaded or unloaded a file */
#define KNOWN_MAX 4096 /* places; then the IOC is entered anew */
#define RETRY_NS (10 * EBPFMON_SECOND_NS) /* try again: the IOC may load the library later */

/* A place with a probe. The kernel keeps the probe of a file that is unloaded, and it is there again when the file is
 * loaded again. */
typedef struct {
    dev_t dev;
    ino_t ino;
    uint64_t offset;
} Known;

typedef struct {
    ebpfMonFollowedIoc ioc;
    Known   *known;           /* places of the query's own function or USDT probe */
    size_t   knownCount, knownRoom;
    uint64_t mappings, checkAt; /* ebpfMonFunctionMappings() when it was looked at last; when to look again (monotonic
                                 * ns) */
    int      isLost;          /* its function was unloaded, or could not be looked for; q->trouble says so */
    uint64_t lostUntil;       /* isLost: look for it again then, even if no other file is mapped (monotonic ns) */
    unsigned probes;
    unsigned payer;           /* under which number the kernel part counts what it pays; 0: none of its own */
    unsigned places, stepped; /* places with a probe, and how many of these the kernel single-steps */
    unsigned files;           /* that have a function of this name, if it is no pattern */
    ebpfMonProbe *probe;
    size_t   room;
} Followed;

struct ebpfMonQueryIocs {
    const ebpfMonQuerySpec *spec;
    ebpfMonQueryPrograms *programs;
    ebpfMonQueryNames *names;
    ebpfMonFollowedIocs *iocs;
    char     trouble[200];
};

static int isFunction(const ebpfMonQueryIocs *q)
{
    return q->spec->order.source <= ebpfMonQueryUsdt;
}

static void leaveIoc(void *arg, ebpfMonFollowedIoc *ioc, int hasEnded)
{
    Followed *f = (Followed *)ioc;
    ebpfMonQueryIocs *q = arg;

    if (f->probes)
        (hasEnded ? ebpfMonCloserCloseLater : ebpfMonCloserClose)(f->probe, f->probes);
    f->probes = 0;
    free(f->probe);
    free(f->known);
    f->probe = NULL;
    f->known = NULL;
    f->knownCount = f->knownRoom = 0;
    f->isLost = 0;
    f->room = f->payer = 0;
    ebpfMonQueryProgramsRemoveProcess(q->programs, ioc->pid);
}

typedef int (*SetProbe)(ebpfMonQueryPrograms *programs, const ebpfMonUprobePlaces *places,
                        ebpfMonProbe probe[2 * EBPFMON_FUNCTION_SITES], unsigned *probes);

static int hasName(const ebpfMonQueryNames *n, uint32_t iocId, const ebpfMonFunctionPlace *place)
{
    for (size_t i = 0; i < n->functions; i++)
        if (n->function[i].iocId == iocId && n->function[i].address == place->address)
            return strcmp(n->function[i].name, place->name) == 0;
    return 0;
}

/* Notes the name of each place, because a key may show it. A new name is put before older ones of the same address. */
static void noteNames(ebpfMonQueryIocs *q, const Followed *f, const ebpfMonFunctionPlaces *places)
{
    ebpfMonQueryNames *n = q->names;

    for (unsigned i = 0; i < places->count; i++) {
        if (hasName(n, f->ioc.iocId, &places->place[i]))
            continue;
        if (ebpfMonArrayGrow(&n->function, &n->room, n->functions + 1, 16, sizeof(*n->function)))
            return;
        memmove(n->function + 1, n->function, n->functions++ * sizeof(*n->function));
        n->function[0] = (ebpfMonQueryFunction){ .iocId = f->ioc.iocId, .address = places->place[i].address };
        ebpfMonTextCopy(n->function[0].name, sizeof(n->function[0].name), places->place[i].name);
    }
}

static int isKnown(const Followed *f, const ebpfMonFunctionPlace *place)
{
    for (size_t i = 0; i < f->knownCount; i++)
        if (f->known[i].offset == place->site.offset && f->known[i].ino == place->ino && f->known[i].dev == place->dev)
            return 1;
    return 0;
}

static void noteKnown(Followed *f, const ebpfMonFunctionPlace *place)
{
    if (!ebpfMonArrayGrow(&f->known, &f->knownRoom, f->knownCount + 1, 16, sizeof(*f->known)))
        f->known[f->knownCount++] = (Known){ place->dev, place->ino, place->site.offset };
}

/* Sets probes at the first places, as many as are in the same file and have none yet. isOwn: they are those of the
 * query's own function. Returns how many places are done. *err: 0, or an error of uprobe.h. */
static unsigned setInFile(ebpfMonQueryIocs *q, Followed *f, const ebpfMonFunctionPlace *place, unsigned count,
                          SetProbe set, int isOwn, int *err)
{
    uint64_t offset[EBPFMON_FUNCTION_SITES], semaphore[EBPFMON_FUNCTION_SITES];
    unsigned n = 0, probes, stepped = 0;
    ebpfMonUprobePlaces places = { place[0].path, offset, semaphore, .pid = f->ioc.pid };

    for (; n < count && strcmp(place[n].path, place[0].path) == 0 && !isKnown(f, &place[n]); n++) {
        offset[n] = place[n].site.offset;
        semaphore[n] = place[n].semaphore;
        stepped += place[n].site.cls == ebpfMonSiteStepped;
    }
    if (!n) { /* its probe is still there */
        *err = 0;
        return 1;
    }
    places.count = n;
    *err = ebpfMonArrayGrow(&f->probe, &f->room, f->probes + 2 * EBPFMON_FUNCTION_SITES, 16, sizeof(*f->probe)) ? ENOMEM
         : set(q->programs, &places, f->probe + f->probes, &probes);
    if (!*err) {
        f->probes += probes;
        f->places += n;
        f->stepped += stepped;
        for (unsigned i = 0; isOwn && i < n; i++)
            noteKnown(f, &place[i]);
    }
    return n;
}

/* Tells the kernel part where one place of a USDT probe has its arguments, and which place is the first one of the
 * same name: all places of a name are counted as one. 0, or an errno. */
static int addSite(ebpfMonQueryIocs *q, const Followed *f, const ebpfMonFunctionPlaces *places, unsigned n)
{
    struct ebpfMonQuerySite site = places->place[n].operands;
    unsigned first = 0;

    while (strcmp(places->place[first].name, places->place[n].name) != 0)
        first++;
    site.first = places->place[first].address;
    return ebpfMonQueryProgramsAddSite(q->programs, f->ioc.pid, places->place[n].address, &site);
}

/* How many files have a place. They are in the order of the files. */
static unsigned countFiles(const ebpfMonFunctionPlaces *places)
{
    unsigned files = places->count != 0;

    for (unsigned i = 1; i < places->count; i++)
        files += strcmp(places->place[i].path, places->place[i - 1].path) != 0;
    return files;
}

/* Nonzero: a probe at one of the places would do harm (probe/childTrial.h), and "why" names it. Then none gets a probe,
 * because without that place the counts would be wrong. */
static int hasHarmfulPlace(const ebpfMonFunctionPlaces *places, char *why, size_t size)
{
    for (unsigned i = 0; i < places->count; i++) {
        const ebpfMonFunctionPlace *p = &places->place[i];

        if (ebpfMonUprobeCheck(p->path, &p->site.offset, 1) != EBPFMON_UPROBE_HARMS)
            continue;
        snprintf(why, size, "%.24s%s0x%" PRIx64 " is a nop of 5 bytes: this kernel overwrites the stack there. Take "
                 "another place or kernel (queries.md)", p->name, p->name[0] ? " at " : "offset ",
                 p->site.vaddr ? p->site.vaddr : p->site.offset);
        return 1;
    }
    return 0;
}

/* Sets probes in one IOC at one function, or at all functions that match a pattern. 0, or -1: "why" says what is
 * wrong. */
static int setProbes(ebpfMonQueryIocs *q, Followed *f, const ebpfMonFunctionWanted *wanted, SetProbe set, char *why,
                     size_t size)
{
    ebpfMonFunctionPlaces *places;
    int err = 0;

    if (wanted->needReturn && ebpfMonProcSeccomp(f->ioc.pid) == 2) {
        snprintf(why, size, "not watched: it runs under seccomp, which may forbid return probes");
        return -1;
    }
    places = ebpfMonFunctionFind(f->ioc.pid, wanted, why, size);
    if (!places)
        return -1;
    if (hasHarmfulPlace(places, why, size)) {
        free(places);
        return -1;
    }
    for (unsigned i = 0; wanted->isUsdt && i < places->count && !err; i++)
        err = addSite(q, f, places, i);
    for (unsigned i = 0; i < places->count && !err;)
        i += setInFile(q, f, &places->place[i], places->count - i, set, wanted == &q->spec->function, &err);
    if (err == E2BIG && wanted->isUsdt)
        snprintf(why, size, "more than %d places have such USDT probes: choose fewer IOCs, or set \"object\"",
                 EBPFMON_QUERY_SITES);
    else if (err)
        snprintf(why, size, "no probe can be set at %s: %s", wanted->symbol, ebpfMonUprobeErrorText(err));
    else if (wanted == &q->spec->function)
        noteNames(q, f, places);
    if (wanted == &q->spec->function)
        f->files = wanted->isUsdt || ebpfMonFunctionIsPattern(wanted->symbol) ? 0 : countFiles(places);
    free(places);
    return err ? -1 : 0;
}

/* Sets all probes in one IOC. The first ones are at dbProcess: they note which record a thread processes. */
static int setAllProbes(ebpfMonQueryIocs *q, Followed *f, char *why, size_t size)
{
    static const ebpfMonFunctionWanted process = { .object = "*", .symbol = "dbProcess", .args = EBPFMON_ARG1,
                                                   .needReturn = 1 };

    if (q->spec->order.needsRecord && setProbes(q, f, &process, ebpfMonQueryProgramsProbeRecord, why, size))
        return -1;
    return isFunction(q) ? setProbes(q, f, &q->spec->function, ebpfMonQueryProgramsProbe, why, size) : 0;
}

/* The least number that no IOC has. 0: all are in use. */
static unsigned findPayer(const ebpfMonQueryIocs *q)
{
    uint8_t isUsed[EBPFMON_QUERY_PAYERS] = { 1 };
    unsigned n = 1;

    for (const ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(q->iocs); ioc; ioc = ioc->next)
        isUsed[((const Followed *)ioc)->payer] = 1;
    while (n < EBPFMON_QUERY_PAYERS && isUsed[n])
        n++;
    return n < EBPFMON_QUERY_PAYERS ? n : 0;
}

/* Begins to look at an IOC. */
static void enterIoc(void *arg, ebpfMonFollowedIoc *ioc, uint64_t now)
{
    Followed *f = (Followed *)ioc;
    ebpfMonQueryIocs *q = arg;
    char why[160] = "";
    int failed;

    f->mappings = isFunction(q) ? ebpfMonFunctionMappings(ioc->pid, &q->spec->function) : 0;
    f->checkAt = now + CHECK_NS;
    failed = setAllProbes(q, f, why, sizeof(why));

    if (!failed) {
        struct ebpfMonQueryChosen chosen = { .iocId = ioc->iocId, .payer = findPayer(q) };

        f->payer = chosen.payer;
        failed = ebpfMonQueryProgramsAddProcess(q->programs, ioc->pid, &chosen);
        if (failed)
            snprintf(why, sizeof(why), "%s", strerror(failed));
    }
    ioc->isOn = !failed;
    if (failed) {
        leaveIoc(q, ioc, 0);
        f->places = f->stepped = 0;
        ioc->retryAt = now + RETRY_NS;
        snprintf(q->trouble, sizeof(q->trouble), "%.60s: %.130s", ioc->name, why);
    }
}

/* Looks whether the IOC has loaded or unloaded files with the function. A file that it loads again still has its
 * probes; others get theirs now. What fails may succeed later, without another file: so it is tried again. */
static void checkFiles(ebpfMonQueryIocs *q, Followed *f, uint64_t now)
{
    uint64_t mappings;
    char why[160] = "";

    f->checkAt = now + CHECK_NS;
    mappings = ebpfMonFunctionMappings(f->ioc.pid, &q->spec->function);
    if (!mappings || (mappings == f->mappings && !(f->isLost && now >= f->lostUntil)))
        return;
    if (f->knownCount > KNOWN_MAX) {
        leaveIoc(q, &f->ioc, 0);
        f->places = f->stepped = 0;
        f->ioc.isOn = 0;
        return;
    }
    f->mappings = mappings;
    f->isLost = setProbes(q, f, &q->spec->function, ebpfMonQueryProgramsProbe, why, sizeof(why)) != 0;
    f->lostUntil = now + RETRY_NS;
    if (f->isLost)
        snprintf(q->trouble, sizeof(q->trouble), "%.60s: %.130s", f->ioc.name, why);
}

ebpfMonQueryIocs *ebpfMonQueryIocsNew(const ebpfMonQuerySpec *spec, ebpfMonQueryPrograms *programs,
                                      ebpfMonQueryNames *names)
{
    ebpfMonQueryIocs *q = calloc(1, sizeof(*q));
    const ebpfMonFollowedUser user = { .size = sizeof(Followed), .enter = enterIoc, .leave = leaveIoc, .arg = q };

    if (!q)
        return NULL;
    q->spec = spec;
    q->programs = programs;
    q->names = names;
    q->iocs = ebpfMonFollowedIocsNew(&user);
    if (!q->iocs) {
        free(q);
        return NULL;
    }
    return q;
}

void ebpfMonQueryIocsFree(ebpfMonQueryIocs *q)
{
    if (!q)
        return;
    ebpfMonFollowedIocsFree(q->iocs);
    free(q);
}

void ebpfMonQueryIocsFollow(ebpfMonQueryIocs *q, ebpfMonTargets *targets, ebpfMonWorker *worker)
{
    uint64_t now = ebpfMonClockMonotonic();
    ebpfMonFollowedIoc *ioc;

    ebpfMonFollowedIocsFollow(q->iocs, targets, q->spec->ioc, worker);
    for (ioc = ebpfMonFollowedIocsGetFirst(q->iocs); ioc && isFunction(q); ioc = ioc->next)
        if (ioc->isOn && now >= ((Followed *)ioc)->checkAt) {
            checkFiles(q, (Followed *)ioc, now);
            ebpfMonWorkerGiveSign(worker);
        }
    ioc = ebpfMonFollowedIocsGetFirst(q->iocs);
    while (ioc && ioc->isOn && !((const Followed *)ioc)->isLost)
        ioc = ioc->next;
    if (!ioc)
        q->trouble[0] = 0;
}

unsigned ebpfMonQueryIocsCount(const ebpfMonQueryIocs *q, double *stepped)
{
    unsigned on = 0, probes = 0, slow = 0;

    for (const ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(q->iocs); ioc; ioc = ioc->next) {
        const Followed *f = (const Followed *)ioc;

        on += ioc->isOn != 0;
        probes += f->places;
        slow += f->stepped;
    }
    *stepped = probes ? (double)slow / probes : 0;
    return on;
}

unsigned ebpfMonQueryIocsCountFiles(const ebpfMonQueryIocs *q)
{
    unsigned files = 0;

    for (const ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(q->iocs); ioc; ioc = ioc->next)
        if (ioc->isOn && ((const Followed *)ioc)->files > files)
            files = ((const Followed *)ioc)->files;
    return files;
}

unsigned ebpfMonQueryIocsCountLow(const ebpfMonQueryIocs *q)
{
    unsigned low = 0;

    for (const ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(q->iocs); ioc; ioc = ioc->next)
        low += ioc->isOn && ioc->level < ebpfMonLevelChains;
    return low;
}

static void listQueryIocsPayers(const ebpfMonQueryIocs *q, ebpfMonQueryPayerFn each, void *arg)
{
    for (const ebpfMonFollowedIoc *ioc = ebpfMonFollowedIocsGetFirst(q->iocs); ioc; ioc = ioc->next) {
        const Followed *f = (const Followed *)ioc;

        if (ioc->isOn)
            each(arg, ioc->iocId, f->payer, f->places ? (double)f->stepped / f->places : 0);
    }
}

const char *ebpfMonQueryIocsGetTrouble(const ebpfMonQueryIocs *q)
{
    return q->trouble;
}

/* --- cost --- */

typedef struct {
    uint32_t iocId;   /* who pays now; 0: nobody, or all other processes */
    double   stepped; /* part of its probes that the kernel single-steps */
    double   cost;    /* at the last look */
    struct ebpfMonQueryCounts counts; /* at the last look. They go on if another IOC gets this number */
} Payer;

struct ebpfMonQueryCost {
    const ebpfMonQueryOrder *order;
    Payer payer[EBPFMON_QUERY_PAYERS];
    unsigned used; /* payers that have been used so far; number 0 always is */
};

ebpfMonQueryCost *ebpfMonQueryCostNew(const ebpfMonQueryOrder *order)
{
    ebpfMonQueryCost *c = calloc(1, sizeof(*c));

    if (c) {
        c->order = order;
        c->used = 1;
    }
    return c;
}

void ebpfMonQueryCostFree(ebpfMonQueryCost *c)
{
    free(c);
}

/* Returns the time (ns) that a trap takes from the IOC, without the program. Tracepoints and the profile have no
 * trap. *record: the time of a trap at dbProcess, where each call has two traps, at entry and return. */
static double getTrapCost(const ebpfMonQueryOrder *order, const ebpfMonCosts *costs, double stepped, double *record)
{
    double entry = costs->entryNs + stepped * (costs->steppedNs - costs->entryNs);

    *record = (entry + costs->returnNs) / 2;
    switch (order->source) {
    case ebpfMonQueryAtEntry: case ebpfMonQueryUsdt: return entry;
    case ebpfMonQueryAtReturn: return entry + costs->returnNs;
    case ebpfMonQueryCall:     return *record;
    default:                   return 0;
    }
}

static void notePayer(void *arg, uint32_t iocId, unsigned payer, double stepped)
{
    ebpfMonQueryCost *c = arg;

    c->payer[payer].stepped = stepped;
    if (payer)
        c->payer[payer].iocId = iocId;
    if (payer >= c->used)
        c->used = payer + 1;
}

static void addCounts(struct ebpfMonQueryCounts *sum, const struct ebpfMonQueryCounts *more)
{
    sum->runs += more->runs;
    sum->ns += more->ns;
    sum->passed += more->passed;
    sum->full += more->full;
    sum->unsent += more->unsent;
    sum->faults += more->faults;
    sum->lost += more->lost;
    sum->records += more->records;
}

double ebpfMonQueryCostLook(ebpfMonQueryCost *c, ebpfMonQueryPrograms *programs, const ebpfMonQueryIocs *iocs,
                            const ebpfMonCosts *costs, double seconds, struct ebpfMonQueryCounts *sum)
{
    double all = 0;

    for (unsigned i = 0; i < c->used; i++)
        c->payer[i].iocId = 0;
    listQueryIocsPayers(iocs, notePayer, c);
    memset(sum, 0, sizeof(*sum));
    for (unsigned i = 0; i < c->used; i++) {
        Payer *p = &c->payer[i];
        double record, trap = getTrapCost(c->order, costs, p->stepped, &record);
        struct ebpfMonQueryCounts now;

        ebpfMonQueryProgramsReadCounts(programs, i, &now);
        p->cost = seconds <= 0 ? 0 : 100 / (seconds * 1e9) *
                  ((double)(now.runs - p->counts.runs) * trap + (double)(now.records - p->counts.records) * record +
                   (double)(now.ns - p->counts.ns));
        p->counts = now;
        addCounts(sum, &now);
        all += p->cost;
    }
    return all;
}

double ebpfMonQueryCostOfIoc(const ebpfMonQueryCost *c, uint32_t iocId)
{
    for (unsigned i = 1; i < c->used; i++)
        if (c->payer[i].iocId == iocId)
            return c->payer[i].cost;
    return 0;
}
