/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errlog.h>

#include "common/clock.h"
#include "model/put.h"
#include "watch/typeTrial.h"

typedef struct {
    uint32_t index;           /* in the catalogue */
    int64_t  ahead;           /* of the trap's count before the snapshot's when the comparison began */
    uint64_t trappedFirst;    /* the trap's count then */
    uint64_t trapped, count;  /* at the last look */
} triedRecord;

struct ebpfMonTypeTrial {
    ebpfMonAudits *audits; /* the caller's */
    uint32_t count;
    int      hasBegun;
    int      isExact;   /* it began while both counters stood still */
    int      isCheck;   /* the trap was attached for this comparison */
    uint64_t since;     /* of a check; monotonic ns */
    uint64_t next;      /* check */
    triedRecord record[];
};

void ebpfMonTypeTrialSetTypes(ebpfMonCatalogue *cat)
{
    /* modules/database/src/std/rec of R7.0.1 to R7.0.8.1 */
    static const char *const base[] = {
        "aSub", "aai", "aao", "ai", "ao", "bi", "bo", "calc", "calcout", "compress", "dfanout", "event", "fanout",
        "histogram", "int64in", "int64out", "longin", "longout", "lsi", "lso", "mbbi", "mbbiDirect", "mbbo",
        "mbboDirect", "permissive", "printf", "sel", "seq", "state", "stringin", "stringout", "sub", "subArray",
        "waveform",
    };

    for (uint32_t k = 0; k < cat->rtypes; k++) {
        cat->rtype[k].stamps = EBPFMON_STAMPS_UNKNOWN;
        for (unsigned i = 0; i < sizeof(base) / sizeof(base[0]); i++)
            if (strcmp(cat->rtype[k].name, base[i]) == 0)
                cat->rtype[k].stamps = EBPFMON_STAMPS_BASE;
    }
}

ebpfMonTypeTrial *ebpfMonTypeTrialNew(const ebpfMonCatalogue *cat, ebpfMonAudits *audits)
{
    ebpfMonTypeTrial *trial;
    uint32_t count = 0;

    for (uint32_t i = 0; i < cat->count; i++)
        count += cat->rtype[cat->rec[i].rtype].stamps != EBPFMON_STAMPS_BASE;
    if (!count)
        return NULL;
    trial = calloc(1, sizeof(*trial) + count * sizeof(trial->record[0]));
    if (!trial)
        return NULL;
    trial->audits = audits;
    for (uint32_t i = 0; i < cat->count; i++)
        if (cat->rtype[cat->rec[i].rtype].stamps != EBPFMON_STAMPS_BASE)
            trial->record[trial->count++].index = i;
    return trial;
}

void ebpfMonTypeTrialFree(ebpfMonTypeTrial *trial)
{
    free(trial);
}

void ebpfMonTypeTrialBegin(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, int standStill)
{
    for (uint32_t i = 0; trial && i < trial->count; i++) {
        triedRecord *r = &trial->record[i];
        const volatile struct ebpfMonRecState *st = &t->recState[r->index];

        r->trapped = r->trappedFirst = st->trapped;
        r->count = st->count;
        r->ahead = (int64_t)(r->trapped - r->count);
    }
    if (trial) {
        trial->hasBegun = 1;
        trial->isExact = standStill;
    }
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
static const triedRecord *findRecord(const ebpfMonTypeTrial *trial, uint32_t index)
{
    const triedRecord key = { .index = index };

    return bsearch(&key, trial->record, trial->count, sizeof(key), byIndex);
}

int ebpfMonTypeTrialAgrees(const ebpfMonTypeTrial *trial, const ebpfMonTarget *t, uint32_t index)
{
    const volatile struct ebpfMonRecState *st = &t->recState[index];
    const triedRecord *r = findRecord(trial, index);

    return r && trial->hasBegun && (int64_t)(st->trapped - st->count) == r->ahead;
}

int64_t ebpfMonTypeTrialGetAhead(const ebpfMonTypeTrial *trial, uint32_t index)
{
    const triedRecord *r = findRecord(trial, index);

    return r ? r->ahead : 0;
}

/* Nonzero: the two counters differ by more than a chain that is under way, or was when the comparison began. */
static int isWrong(const ebpfMonTypeTrial *trial, triedRecord *r, const ebpfMonTarget *t)
{
    const volatile struct ebpfMonRecState *st = &t->recState[r->index];
    uint64_t trapped = st->trapped, count = st->count;
    int isIdle = trapped == r->trapped && count == r->count;
    int64_t differ = (int64_t)(trapped - count) - r->ahead;

    r->trapped = trapped;
    r->count = count;
    return llabs(differ) > (trial->isExact ? 0 : 1) + !isIdle;
}

static void auditType(ebpfMonTypeTrial *trial, const ebpfMonTarget *t, const ebpfMonRecType *type)
{
    char about[EBPFMON_NAME_SIZE + sizeof(type->name) + 20];

    snprintf(about, sizeof(about), "%s, records of type %s", t->name, type->name);
    ebpfMonAuditsAdd(trial->audits, ebpfMonAuditProcessings, 1, about);
}

/* The types that were seen to be wrong now. Nonzero: there is one. */
static int findWrongTypes(ebpfMonTypeTrial *trial, ebpfMonTarget *t)
{
    int any = 0;

    for (uint32_t i = 0; i < trial->count; i++) {
        triedRecord *r = &trial->record[i];
        ebpfMonRecType *type = &t->cat->rtype[t->cat->rec[r->index].rtype];

        /* one that a chain can process twice is counted by the trap, whatever its type is */
        if (!isWrong(trial, r, t) || t->how[r->index] & EBPFMON_TWICE || type->stamps == EBPFMON_STAMPS_NOT)
            continue;
        if (type->stamps == EBPFMON_STAMPS_SEEN) /* it was counted by its time stamp, and that was called exact */
            auditType(trial, t, type);
        type->stamps = EBPFMON_STAMPS_NOT;
        any = 1;
        errlogSevPrintf(errlogInfo, "ebpfMon: IOC %s: the time stamp of record type %s does not show each processing: "
                        "such records are counted one by one\n", t->name, type->name);
    }
    return any;
}

/* Finds unknown types that have processed often enough, and whose counts do not differ now. Nonzero: there is one. */
static int findGoodTypes(const ebpfMonTypeTrial *trial, ebpfMonTarget *t)
{
    int any = 0;

    for (uint32_t k = 0; k < t->cat->rtypes; k++) {
        uint64_t seen = 0, differ = 0;

        for (uint32_t i = 0; t->cat->rtype[k].stamps == EBPFMON_STAMPS_UNKNOWN && i < trial->count; i++) {
            const triedRecord *r = &trial->record[i];

            if (t->cat->rec[r->index].rtype != k || t->how[r->index] & EBPFMON_TWICE)
                continue;
            seen += r->trapped - r->trappedFirst;
            differ += trial->isExact && (int64_t)(r->trapped - r->count) != r->ahead;
        }
        if (seen < EBPFMON_TRIAL_ENOUGH || differ)
            continue;
        t->cat->rtype[k].stamps = EBPFMON_STAMPS_SEEN;
        any = 1;
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
    if (!trial->isCheck && now >= trial->next) {
        trial->isCheck = 1;
        trial->since = now;
        trial->hasBegun &= trapOn; /* one that is under way goes on */
        return trapOn ? ebpfMonTrialNothing : ebpfMonTrialProbes;
    }
    if (!trapOn)
        trial->hasBegun = 0; /* what the trap did not see is no difference */
    else if (!trial->hasBegun)
        ebpfMonTypeTrialBegin(trial, t, 0);
    judged = trapOn && findWrongTypes(trial, t);
    if (trapOn)
        judged |= findGoodTypes(trial, t);
    if (judged)
        return ebpfMonTrialLinks;
    if (!trial->isCheck || now - trial->since < EBPFMON_TRIAL_CHECK_NS)
        return ebpfMonTrialNothing;
    trial->isCheck = 0;
    trial->next = now + EBPFMON_TRIAL_EVERY_NS;
    return ebpfMonTrialProbes;
}
