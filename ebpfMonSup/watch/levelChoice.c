/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "watch/followed.h"
#include "watch/levelChoice.h"
#include "watch/typeTrial.h"

/* Nonzero: some chains end in a function that was not recognised, so they are not seen. */
static int lacksUnlockMany(const ebpfMonTarget *t)
{
    return t->cat && t->cat->base->has.lockMany && t->image.core->isRecognised &&
           t->image.core->site[ebpfMonFnScanUnlockMany].cls == ebpfMonSiteNone;
}

/* The functions of an IOC without symbols that were not recognised. This is a remark and no trouble: the rest is
 * seen. */
static void nameMissing(const ebpfMonTarget *t, char note[EBPFMON_NOTE_SIZE])
{
    int isOpen = t->level >= ebpfMonLevelCounts && t->followed->functions.verdict == ebpfMonFunctionsOpen;
    int n = snprintf(note, EBPFMON_NOTE_SIZE, "recognised without symbols%s", isOpen ? ", no record seen yet" : "");
    const char *mark = ", but for ";

    for (int fn = 0; fn < ebpfMonFnCount && n < EBPFMON_NOTE_SIZE; fn++)
        if (t->image.core->site[fn].cls == ebpfMonSiteNone &&
            (fn != ebpfMonFnScanUnlockMany || (t->cat && t->cat->base->has.lockMany))) {
            n += snprintf(note + n, (size_t)(EBPFMON_NOTE_SIZE - n), "%s%s", mark, ebpfMonFnNames[fn]);
            mark = ", ";
        }
}

ebpfMonLevel ebpfMonLevelChoiceFind(const ebpfMonTarget *t)
{
    const ebpfMonBudget *b = &t->followed->budget;
    ebpfMonLevel level = t->wantedLevel < b->ceiling ? t->wantedLevel : b->ceiling;

    if (!t->cat || t->gone || t->followed->functions.verdict == ebpfMonFunctionsWrong)
        level = ebpfMonLevelOff;
    if (t->slot == UINT32_MAX && level > ebpfMonLevelPuts)
        level = ebpfMonLevelPuts; /* iocInit is not done, or its records found no room */
    if (lacksUnlockMany(t) && level > ebpfMonLevelPuts)
        level = ebpfMonLevelPuts;
    if ((t->followed->odd.links || t->followed->odd.locks) && level > ebpfMonLevelPuts)
        level = ebpfMonLevelPuts; /* what a chain reaches is not known */
    return level;
}

uint32_t ebpfMonLevelChoiceFindProbes(const ebpfMonTarget *t, ebpfMonLevel level, ebpfMonAttachWay way)
{
    uint32_t want = ebpfMonAttachLevel((int)level, way);

    if (t->followed->odd.server >= EBPFMON_ODD_SERVER)
        want &= ~(EBPFMON_BIT(ebpfMonProgCheckPut) | EBPFMON_BIT(ebpfMonProgCamessage) |
                  EBPFMON_BIT(ebpfMonProgNotify));
    if (t->cat && !t->cat->base->has.lockMany)
        want &= ~EBPFMON_BIT(ebpfMonProgUnlockMany);
    if (level >= ebpfMonLevelCounts && !t->followed->budget.noTrap &&
        (t->followed->trapped || ebpfMonTypeTrialWantsTrap(t->followed->trial)))
        want |= EBPFMON_BIT(ebpfMonProgCompleted);
    if (t->followed->probes.reference && level >= ebpfMonLevelCounts)
        want |= EBPFMON_BIT(ebpfMonProgProcess);
    return want;
}

/* Percent of the time in which chains of its scan lists are to be timed. */
static double findAsked(const ebpfMonTarget *t, const ebpfMonFilter *filter)
{
    return t->followed->timing.all ? 100 : filter->timed;
}

double ebpfMonLevelChoiceFindPercent(const ebpfMonTarget *t, const ebpfMonFilter *filter)
{
    return fmin(findAsked(t, filter), t->followed->budget.timed);
}

uint32_t ebpfMonLevelChoiceFindSweepProbes(const ebpfMonTarget *t, ebpfMonLevel level, ebpfMonAttachWay way,
                                           uint32_t want)
{
    uint32_t sweeps;
    int isLevel = level == ebpfMonLevelCounts || (level == ebpfMonLevelChains && t->followed->timing.inTurns);

    if (!isLevel || way != ebpfMonAttachPasses || t->followed->sweep.broken ||
        ((want & EBPFMON_BIT(ebpfMonProgCompleted)) && t->followed->trapped)) /* if none, it only checks */
        return 0;
    sweeps = ebpfMonAttachSweeps(&t->followed->att);
    if (sweeps && level == ebpfMonLevelChains) /* what sees the begin of a chain sees the request of its lock, too */
        sweeps = (sweeps & ~EBPFMON_BIT(ebpfMonProgAsk)) | EBPFMON_BIT(ebpfMonProgLock);
    return sweeps;
}

int ebpfMonLevelChoiceHasPlace(const ebpfMonTarget *t)
{
    return t->slot != UINT32_MAX || t->level == ebpfMonLevelOff;
}

/* Nonzero: the budget does not allow to time all chains of scan lists. */
static int isTimedLess(const ebpfMonTarget *t)
{
    return t->followed->budget.timed < 100 && t->sweeps && t->level == ebpfMonLevelChains;
}

/* What the filter asks for, and the budget does not allow. */
static void noteBudget(const ebpfMonTarget *t, const ebpfMonFilter *filter, char note[EBPFMON_NOTE_SIZE])
{
    const ebpfMonBudget *b = &t->followed->budget;
    char what[EBPFMON_NOTE_SIZE / 2] = "", counts[EBPFMON_NOTE_SIZE / 2] = "";

    if (b->ceiling < t->wantedLevel)
        snprintf(what, sizeof(what), "watched at level %s", ebpfMonLevelName(b->ceiling));
    else if (isTimedLess(t) && b->timed < findAsked(t, filter))
        snprintf(what, sizeof(what), "latencies of its scans are measured in %.2g %% of the time", b->timed);
    if (b->noTrap && t->followed->trapped)
        snprintf(counts, sizeof(counts), "the counts of %u records may be too low", t->followed->trapped);
    if (what[0] || counts[0])
        snprintf(note, EBPFMON_NOTE_SIZE, "over its budget of %g %%: %s%s%s", filter->budget, what,
                 what[0] && counts[0] ? "; " : "", counts);
}

/* A remark, if there is one: all that was asked for is seen. Nonzero: there is. */
static int noteRemark(const ebpfMonTarget *t, const ebpfMonFilter *filter, char note[EBPFMON_NOTE_SIZE])
{
    if (isTimedLess(t))
        snprintf(note, EBPFMON_NOTE_SIZE,
                 "latencies are measured in %.2g %% of the time, also after slow scans: always would cost more than "
                 "its budget of %g %%", ebpfMonLevelChoiceFindPercent(t, filter), filter->budget);
    else if (t->image.core->isRecognised)
        nameMissing(t, note);
    else if (t->image.core->isCheckCopied)
        snprintf(note, EBPFMON_NOTE_SIZE,
                 "puts that access security refuses are not seen: the compiler copied rsrvCheckPut into its "
                 "callers");
    else if (t->followed->probes.hasTls)
        snprintf(note, EBPFMON_NOTE_SIZE,
                 "has clients over TLS: puts that it refuses them are seen by the query PUTS_REFUSED only");
    else if (t->followed->att.stepped)
        snprintf(note, EBPFMON_NOTE_SIZE, "some functions have no cheap place for a probe");
    return note[0] != 0;
}

int ebpfMonLevelChoiceWriteNote(const ebpfMonTarget *t, const ebpfMonFilter *filter, char note[EBPFMON_NOTE_SIZE])
{
    noteBudget(t, filter, note);
    if (t->followed->probes.noFiles)
        snprintf(note, EBPFMON_NOTE_SIZE, "%s%s: too few files may be open for its probes. Raise the limit (ulimit -n, "
                 "LimitNOFILE), or watch fewer IOCs", t->level > ebpfMonLevelOff ? "watched at level " : "not watched",
                 t->level > ebpfMonLevelOff ? ebpfMonLevelName(t->level) : "");
    if (t->followed->life.silent)
        snprintf(note, EBPFMON_NOTE_SIZE, EBPFMON_NOTE_SILENT);
    if (t->followed->odd.server >= EBPFMON_ODD_SERVER)
        snprintf(note, EBPFMON_NOTE_SIZE,
                 "its CA server is as in no known release of EPICS Base (%s): no names of CA clients, no "
                 "puts that are refused", t->followed->odd.member);
    if (t->followed->odd.locks && t->wantedLevel > ebpfMonLevelPuts)
        snprintf(note, EBPFMON_NOTE_SIZE,
                 "puts only, nothing is counted: its lock sets are as in no known release of EPICS "
                 "Base");
    else if (t->followed->odd.links && t->wantedLevel > ebpfMonLevelPuts)
        snprintf(note, EBPFMON_NOTE_SIZE,
                 "puts only, nothing is counted: %u of its links are as in no known release of EPICS "
                 "Base",
                 t->followed->odd.links);
    if (lacksUnlockMany(t) && t->wantedLevel > ebpfMonLevelPuts)
        snprintf(note, EBPFMON_NOTE_SIZE,
                 "puts only, nothing is counted: dbScanUnlockMany was not recognised in its stripped program. "
                 "Give it a file of symbols");
    if (t->followed->functions.verdict == ebpfMonFunctionsWrong)
        snprintf(note, EBPFMON_NOTE_SIZE, "not watched: %s. dbScanUnlock does not get records",
                 t->image.core->isRecognised ? "its functions were recognised wrongly" :
                                               "the symbols are not those of its program");
    if (!note[0] && t->followed->probes.nameDenied)
        snprintf(note, EBPFMON_NOTE_SIZE, "its variable IOC may not be read, so it may have another name: give ebpfMon "
                 "CAP_DAC_READ_SEARCH");
    return !note[0] && ebpfMonLevelChoiceHasPlace(t) && noteRemark(t, filter, note);
}
