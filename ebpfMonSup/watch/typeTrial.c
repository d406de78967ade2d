/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errlog.h>

#include "common/clock.h"
#include "ioc/baseLayout.h"
#include "ioc/recordLinks.h"
#include "model/put.h"
#include "watch/followed.h"
#include "watch/typeTrial.h"

#define WAKES_MAX 10
#define STUCK     20 /* looks in a row; a chain that is under way has ended at the next ones */
#define ALL_SEEN  3 /* looks with the trap: a chain that was under way when it was attached has ended */

typedef struct {
    uint32_t index;           /* in the catalogue */
    int64_t  ahead;           /* of the trap's count before the snapshot's when the comparison began */
    uint64_t trappedFirst;    /* the trap's count then */
    uint64_t trapped, count;  /* at the last look */
    uint32_t strangeFirst;    /* ebpfMonRecState.strange when the comparison began */
    uint64_t moves;           /* of all its counters, at the last look for sleep */
    int      isExact;         /* the comparison began while both counters stood still */
} triedRecord;

/* A type or a device support. */
typedef struct {
    uint64_t quietSince; /* monotonic ns, while the trap is attached; 0: no record of it may sleep */
    uint8_t  wakes;      /* how often it woke */
    uint8_t  isWoken;    /* something of it moved while it slept; it sleeps until the trap sees all again */
    uint8_t *stamps;     /* EBPFMON_STAMPS_… of it; NULL: no record of it may sleep */
} triedSleep;

struct ebpfMonTypeTrial {
    ebpfMonAudits *audits; /* the caller's */
    uint32_t count;
    int      hasBegun;
    int      isCheck;   /* the trap was attached for this comparison */
    uint64_t since;     /* of a check; monotonic ns */
    uint64_t next;      /* check */
    unsigned stuckLooks; /* how many in a row found a type that is neither good nor wrong */
    unsigned trapLooks; /* how many looks in a row found the trap attached */
    int      isWoken;   /* a device support is woken, and the trap is not attached */
    int      wasSwept;  /* passes were watched at the last look */
    triedSleep *sleep;  /* by class */
    uint8_t *behind;    /* ebpfMonTypeTrialFindBehind, during a look at which it was needed */
    uint32_t *classOf;  /* by record type, its number among all types and device supports, which follow it */
    uint32_t classes;
    triedRecord record[];
};

static int isOneOf(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return 1;
    return 0;
}

/* Reads the names of the device supports of a type. */
static void readDevSups(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint32_t rtype)
{
    /* modules/database/src/std/dev/devSoft.dbd of R7.0.10, and of older ones */
    static const char *const base[] = {
        "Soft Channel", "Raw Soft Channel", "Async Soft Channel", "Soft Timestamp", "General Time", "Db State",
        "getenv", "stdio", "Test Asyn", NULL,
    };
    const ebpfMonField *dtyp = ebpfMonCatalogueFieldNamed(cat, (uint16_t)rtype, "DTYP");
    ebpfMonRecType *type = &cat->rtype[rtype];
    struct layoutDeviceMenu menu;

    free(type->dev);
    type->dev = NULL;
    type->devs = 0;
    if (!dtyp || !dtyp->ftPvt || ebpfMonMemRead(mem, dtyp->ftPvt, &menu, sizeof(menu)) || menu.nChoice <= 0 ||
        menu.nChoice > EBPFMON_DEVSUPS_MAX || !(type->dev = calloc((size_t)menu.nChoice, sizeof(*type->dev))))
        return;
    type->devs = (uint16_t)menu.nChoice;
    for (unsigned i = 0; i < type->devs; i++) {
        ebpfMonDevSup *dev = &type->dev[i];

        if (ebpfMonMemStr(mem, ebpfMonMemPtr(mem, menu.papChoice + 8u * i), dev->name, sizeof(dev->name)) < 0 ||
            !isOneOf(dev->name, base))
            dev->stamps = EBPFMON_STAMPS_UNKNOWN;
    }
}

void ebpfMonTypeTrialSetTypes(ebpfMonCatalogue *cat, ebpfMonMem *mem)
{
    /* modules/database/src/std/rec of R7.0.1 to R7.0.8.1 */
    static const char *const base[] = {
        "aSub", "aai", "aao", "ai", "ao", "bi", "bo", "calc", "calcout", "compress", "dfanout", "event", "fanout",
        "histogram", "int64in", "int64out", "longin", "longout", "lsi", "lso", "mbbi", "mbbiDirect", "mbbo",
        "mbboDirect", "permissive", "printf", "sel", "seq", "state", "stringin", "stringout", "sub", "subArray",
        "waveform", NULL,
    };
    /* process() sets the time stamp each time, and goes on to the forward link only when something has ended (modules
     * motor, busy, sscan, std, scaler, mca). A record that is idle during the trial does not show that. */
    static const char *const apart[] = { "busy", "mca", "motor", "scaler", "sscan", NULL };
    /* these go on to their forward links in a callback, without a lock: wait and swait if they write to a PV, which may
     * begin after the trial */
    static const char *const unlocked[] = { "swait", "throttle", "wait", NULL };

    for (uint32_t k = 0; k < cat->rtypes; k++) {
        cat->rtype[k].stamps = isOneOf(cat->rtype[k].name, base) ? EBPFMON_STAMPS_BASE :
                               isOneOf(cat->rtype[k].name, apart) ? EBPFMON_STAMPS_NOT :
                               isOneOf(cat->rtype[k].name, unlocked) ? EBPFMON_STAMPS_UNLOCKED : EBPFMON_STAMPS_UNKNOWN;
        if (mem && cat->rtype[k].stamps == EBPFMON_STAMPS_BASE && cat->rtype[k].records)
            readDevSups(mem, cat, k);
    }
}

uint8_t *ebpfMonTypeTrialFindBehind(const ebpfMonCatalogue *cat)
{
    static const uint8_t from[] = { EBPFMON_STAMPS_UNLOCKED, EBPFMON_STAMPS_UNKNOWN };
    uint8_t *behind = calloc((size_t)cat->count + 1, 1);
    uint32_t *queue = malloc(((size_t)cat->count * 2 + 1) * sizeof(*queue));

    for (unsigned n = 0; behind && queue && n < 2; n++) {
        uint32_t count = 0;

        for (uint32_t i = 0; i < cat->count; i++)
            if (cat->rtype[cat->rec[i].rtype].stamps == from[n])
                queue[count++] = i;
        ebpfMonRecordLinksFollow(cat, behind, from[n], queue, count);
    }
    if (!queue) {
        free(behind);
        behind = NULL;
    }
    free(queue);
    return behind;
}

/* Numbers the types and their device supports. 0, or -1 without memory. */
static int numberClasses(ebpfMonTypeTrial *trial, const ebpfMonCatalogue *cat)
{
    trial->classOf = calloc((size_t)cat->rtypes + 1, sizeof(*trial->classOf));
    for (uint32_t k = 0; trial->classOf && k < cat->rtypes; k++) {
        trial->classOf[k] = trial->classes;
        trial->classes += 1u + cat->rtype[k].devs;
    }
    trial->sleep = calloc((size_t)trial->classes + 1, sizeof(*trial->sleep));
    return trial->classOf && trial->sleep ? 0 : -1;
}

/* The number of the class of a record: that of its type, or of its device support. "stamps": of this class. */
static uint32_t findClass(const ebpfMonTypeTrial *trial, const ebpfMonCatalogue *cat, uint32_t index, uint8_t **stamps)
{
    const ebpfMonRecord *rec = &cat->rec[index];

    *stamps = ebpfMonCatalogueStamps(cat, index);
    return trial->classOf[rec->rtype] + (*stamps == &cat->rtype[rec->rtype].stamps ? 0 : rec->dev);
}

ebpfMonTypeTrial *ebpfMonTypeTrialNew(const ebpfMonCatalogue *cat, ebpfMonAudits *audits)
{
    uint8_t *behind = ebpfMonTypeTrialFindBehind(cat);
    ebpfMonTypeTrial *trial = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; behind && i < cat->count; i++) {
        behind[i] |= *ebpfMonCatalogueStamps(cat, i) != EBPFMON_STAMPS_BASE;
        count += !!behind[i];
    }
    if (count)
        trial = calloc(1, sizeof(*trial) + count * sizeof(trial->record[0]));
    if (trial && numberClasses(trial, cat)) {
        ebpfMonTypeTrialFree(trial);
        trial = NULL;
    }
    if (trial)
        trial->audits = audits;
    for (uint32_t i = 0; trial && i < cat->count; i++)
        if (behind[i])
            trial->record[trial->count++].index = i;
    free(behind);
    return trial;
}

void ebpfMonTypeTrialFree(ebpfMonTypeTrial *trial)
{
    if (trial) {
        free(trial->classOf);
        free(trial->sleep);
    }
    free(trial);
}

static void beginRecord(triedRecord *r, const ebpfMonTarget *t, int standStill)
{
    const volatile struct ebpfMonRecState *st = &t->recState[r->index];

    r->trapped = r->trappedFirst = st->trapped;
    r->count = st->count;
    r->ahead = (int64_t)(r->trapped - r->count);
    r->strangeFirst = st->strange;
    r->isExact = standStill;
}

void ebpfMonTypeTrialBegin(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, int standStill)
{
    for (uint32_t i = 0; trial && i < trial->count; i++)
        beginRecord(&trial->record[i], t, standStill);
    if (trial)
        trial->hasBegun = 1;
}

int ebpfMonTypeTrialWantsTrap(const ebpfMonTypeTrial *trial)
{
    return trial && trial->isCheck;
}

static int byIndex(const void *a, const void *b)
{
    uint32_t x = ((const triedRecord *)a)->index, y = ((const triedRecord *)b)->index;

    return x < y ? -1 : x > y;
}

/* They are in the order of their indexes. */
static triedRecord *findRecord(const ebpfMonTypeTrial *trial, uint32_t index)
{
    const triedRecord key = { .index = index };

    return bsearch(&key, trial->record, trial->count, sizeof(key), byIndex);
}

int ebpfMonTypeTrialHas(const ebpfMonTypeTrial *trial, uint32_t index)
{
    return trial && findRecord(trial, index) != NULL;
}

int ebpfMonTypeTrialAgrees(const ebpfMonTypeTrial *trial, const ebpfMonTarget *t, uint32_t index)
{
    const volatile struct ebpfMonRecState *st = &t->recState[index];
    const triedRecord *r = findRecord(trial, index);

    return r && trial->hasBegun && (int64_t)(st->trapped - st->count) == r->ahead;
}

void ebpfMonTypeTrialExcuse(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, uint32_t index)
{
    triedRecord *r = trial ? findRecord(trial, index) : NULL;

    if (r) {
        beginRecord(r, t, 0);
        t->recState[index].unlocked = 0;
    }
}

int64_t ebpfMonTypeTrialGetAhead(const ebpfMonTypeTrial *trial, uint32_t index)
{
    const triedRecord *r = findRecord(trial, index);

    return r ? r->ahead : 0;
}

/* Nonzero: the two counters differ by more than a chain that is under way, or was when the comparison began. */
static int isWrong(triedRecord *r, const ebpfMonTarget *t)
{
    const volatile struct ebpfMonRecState *st = &t->recState[r->index];
    uint64_t trapped = st->trapped, count = st->count;
    int isIdle = trapped == r->trapped && count == r->count;
    int64_t differ = (int64_t)(trapped - count) - r->ahead;

    r->trapped = trapped;
    r->count = count;
    return llabs(differ) > !r->isExact + !isIdle || st->strange - r->strangeFirst > (unsigned)!r->isExact;
}

/* Notes and tells that the time stamps of this type, or of this device support, do not show each processing. */
static void setWrong(const ebpfMonTypeTrial *trial, const ebpfMonTarget *t, uint32_t index, uint8_t stamps)
{
    const ebpfMonRecType *type = &t->cat->rtype[t->cat->rec[index].rtype];
    uint8_t *known = ebpfMonCatalogueStamps(t->cat, index);
    char of[sizeof(type->name) + sizeof(type->dev->name) + 40], about[EBPFMON_IOCNAME_SIZE + sizeof(of) + 16];

    snprintf(of, sizeof(of), "type %s%s%s", type->name, known == &type->stamps ? "" : " with ",
             known == &type->stamps ? "" : type->dev[t->cat->rec[index].dev - 1].name);
    if (*known == EBPFMON_STAMPS_SEEN) { /* it was counted by its time stamp, and that was called exact */
        snprintf(about, sizeof(about), "%s, records of %s", t->name, of);
        ebpfMonAuditsAdd(trial->audits, ebpfMonAuditProcessings, 1, about);
    }
    *known = stamps;
    errlogSevPrintf(errlogInfo, "ebpfMon: IOC %s: the time stamp of record %s does not show each processing: such "
                    "records %sare counted one by one\n", t->name, of,
                    stamps == EBPFMON_STAMPS_UNLOCKED ? "and those behind them " : "");
}

/* EBPFMON_STAMPS_… of a type that makes this record process: unknown, or without the lock set; 0: none does. Without
 * memory nothing is judged. */
static uint8_t findBehind(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, uint32_t index)
{
    if (!trial->behind)
        trial->behind = ebpfMonTypeTrialFindBehind(t->cat);
    return trial->behind ? trial->behind[index] : EBPFMON_STAMPS_UNLOCKED;
}

/* Nonzero: this record says nothing about its class, because the trap counts it whatever that is: its time stamp comes
 * from elsewhere, or is one that Base does not set each time; a chain can process it twice; or a record of another type
 * makes it process without its lock set. */
static int isNoWitness(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, uint32_t index)
{
    const ebpfMonRecord *rec = &t->cat->rec[index];
    uint8_t stamps = t->cat->rtype[rec->rtype].stamps;

    return t->how[index] & EBPFMON_TWICE || rec->flags & EBPFMON_REC_TIMED ||
           (rec->flags & EBPFMON_REC_TSE && (stamps == EBPFMON_STAMPS_BASE || stamps == EBPFMON_STAMPS_SEEN)) ||
           findBehind(trial, t, index) == EBPFMON_STAMPS_UNLOCKED;
}

/* Nonzero: one of its kind is under trial. */
static int isJudged(uint8_t stamps)
{
    return stamps != EBPFMON_STAMPS_BASE && stamps != EBPFMON_STAMPS_UNLOCKED && stamps != EBPFMON_STAMPS_ASLEEP;
}

/* The types that were seen to complete without their lock set. Nonzero: there is one. A record that a record of an
 * unknown type makes process may do so because of that one. */
static int findUnlockedTypes(ebpfMonTypeTrial *trial, const ebpfMonTarget *t)
{
    int any = 0;

    for (uint32_t i = 0; i < trial->count; i++) {
        uint32_t index = trial->record[i].index;
        uint8_t behind;

        if (!t->recState[index].unlocked || !isJudged(*ebpfMonCatalogueStamps(t->cat, index)))
            continue;
        behind = findBehind(trial, t, index);
        if (behind == EBPFMON_STAMPS_UNLOCKED) /* its links may change */
            t->recState[index].unlocked = 0;
        if (behind)
            continue;
        setWrong(trial, t, index, EBPFMON_STAMPS_UNLOCKED);
        any = 1;
    }
    return any;
}

/* The types that were seen to be wrong now. Nonzero: there is one. The end of a pass counts by time stamps alone, so
 * records that may sleep are compared when only chains are watched again. */
static int findWrongTypes(ebpfMonTypeTrial *trial, ebpfMonTarget *t)
{
    int any = 0, isSwept = t->followed->sweep.number || trial->wasSwept;

    trial->wasSwept = !!t->followed->sweep.number;
    for (uint32_t i = 0; i < trial->count; i++) {
        triedRecord *r = &trial->record[i];
        uint8_t stamps = *ebpfMonCatalogueStamps(t->cat, r->index);
        int wrong = isWrong(r, t);

        if (isSwept && t->how[r->index] & EBPFMON_MAY_SLEEP) {
            beginRecord(r, t, 0);
            continue;
        }
        if (!wrong || !isJudged(stamps) || stamps == EBPFMON_STAMPS_NOT)
            continue;
        if (isNoWitness(trial, t, r->index)) { /* it may be one later */
            beginRecord(r, t, 0);
            continue;
        }
        setWrong(trial, t, r->index, EBPFMON_STAMPS_NOT);
        any = 1;
    }
    return any;
}

typedef struct {
    uint8_t *stamps; /* NULL: no record of it is tried */
    uint64_t seen, differ;
} triedClass;

static void addToClass(const ebpfMonTarget *t, const triedRecord *r, triedClass *c)
{
    const volatile struct ebpfMonRecState *st = &t->recState[r->index];

    c->seen += r->trapped - r->trappedFirst;
    c->differ += st->unlocked; /* … as long as it is not known why */
    if (r->isExact)
        c->differ += (int64_t)(r->trapped - r->count) != r->ahead || st->strange != r->strangeFirst;
}

/* Finds unknown types that have processed often enough, and whose counts do not differ now. Nonzero: there is one. If a
 * difference neither goes nor grows, a chain was under way when the comparison began: all probes are not attached in
 * one moment. Then it begins anew, or the type would need the trap for good. */
static int findGoodTypes(ebpfMonTypeTrial *trial, ebpfMonTarget *t)
{
    triedClass *all = calloc((size_t)trial->classes + 1, sizeof(*all));
    int any = 0, isStuck = 0;

    for (uint32_t i = 0; all && i < trial->count; i++) {
        const triedRecord *r = &trial->record[i];
        uint8_t *stamps;
        triedClass *c = &all[findClass(trial, t->cat, r->index, &stamps)];

        if (*stamps != EBPFMON_STAMPS_UNKNOWN || isNoWitness(trial, t, r->index))
            continue;
        c->stamps = stamps;
        addToClass(t, r, c);
    }
    for (uint32_t k = 0; all && k < trial->classes; k++)
        if (all[k].stamps && all[k].seen >= EBPFMON_TRIAL_ENOUGH && !all[k].differ) {
            *all[k].stamps = EBPFMON_STAMPS_SEEN;
            any = 1;
        } else if (all[k].stamps && all[k].differ) {
            isStuck |= all[k].seen >= EBPFMON_TRIAL_ENOUGH;
        }
    free(all);
    trial->stuckLooks = isStuck ? trial->stuckLooks + 1 : 0;
    if (trial->stuckLooks >= STUCK) {
        trial->stuckLooks = 0;
        ebpfMonTypeTrialBegin(trial, t, 1);
    }
    return any;
}

/* One look at a record that may sleep. */
static void followRecord(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, triedRecord *r, uint64_t now)
{
    const volatile struct ebpfMonRecState *st = &t->recState[r->index];
    uint64_t moves = st->trapped + st->count + st->strange;
    int hasMoved = moves != r->moves, isUnseen = trial->trapLooks < ALL_SEEN;
    uint8_t *stamps;
    triedSleep *s = &trial->sleep[findClass(trial, t->cat, r->index, &stamps)];

    r->moves = moves;
    if (!(t->how[r->index] & EBPFMON_MAY_SLEEP))
        return;
    s->stamps = stamps;
    if (hasMoved || isUnseen || !s->quietSince)
        s->quietSince = now;
    if (hasMoved && *stamps == EBPFMON_STAMPS_ASLEEP) {
        s->isWoken = 1;
        t->how[r->index] |= isUnseen ? EBPFMON_MISSED : 0;
    }
}

int ebpfMonTypeTrialFollowSleep(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, int trapOn, uint64_t now)
{
    int any = 0;

    trial->trapLooks = trapOn ? trial->trapLooks + (trial->trapLooks < ALL_SEEN) : 0;
    trial->isWoken = 0;
    for (uint32_t i = 0; i < trial->count; i++)
        followRecord(trial, t, &trial->record[i], now);
    for (uint32_t k = 0; k < trial->classes; k++) {
        triedSleep *s = &trial->sleep[k];

        if (s->stamps && *s->stamps == EBPFMON_STAMPS_UNKNOWN &&
            now - s->quietSince >= EBPFMON_TRIAL_QUIET_NS << s->wakes) {
            *s->stamps = EBPFMON_STAMPS_ASLEEP;
            any = 1;
        } else if (s->isWoken && trial->trapLooks == ALL_SEEN) {
            if (*s->stamps == EBPFMON_STAMPS_ASLEEP)
                *s->stamps = EBPFMON_STAMPS_UNKNOWN;
            s->wakes += s->wakes < WAKES_MAX;
            s->isWoken = 0;
            any = 1;
        }
        trial->isWoken |= s->isWoken && !trapOn;
    }
    return any;
}

ebpfMonTrialResult ebpfMonTypeTrialLook(ebpfMonTypeTrial *trial, ebpfMonTarget *t, int trapOn, uint64_t now)
{
    int judged;

    if (!trial)
        return ebpfMonTrialNothing;
    if (!trial->next)
        trial->next = now + EBPFMON_TRIAL_EVERY_NS;
    if (!trial->isCheck && (now >= trial->next || (trial->isWoken && !t->followed->budget.noTrap))) {
        trial->isCheck = 1;
        trial->since = now;
        trial->hasBegun &= trapOn; /* one that is under way goes on */
        return trapOn ? ebpfMonTrialNothing : ebpfMonTrialProbes;
    }
    if (!trapOn)
        trial->hasBegun = 0; /* what the trap did not see is no difference */
    else if (!trial->hasBegun)
        ebpfMonTypeTrialBegin(trial, t, 0);
    judged = trapOn && findUnlockedTypes(trial, t);
    if (trapOn && !judged)
        judged = findWrongTypes(trial, t) | findGoodTypes(trial, t);
    free(trial->behind);
    trial->behind = NULL;
    if (judged)
        return ebpfMonTrialLinks;
    if (!trial->isCheck || now - trial->since < EBPFMON_TRIAL_CHECK_NS)
        return ebpfMonTrialNothing;
    trial->isCheck = 0;
    trial->next = now + EBPFMON_TRIAL_EVERY_NS;
    return ebpfMonTrialProbes;
}
