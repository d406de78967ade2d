/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsAtomic.h>
#include <epicsString.h>
#include <stdio.h>
#include <string.h>
#include "model/ops.h"

/* --- sizes --- */

#define RECORDS_MIN 1000u
#define RECORDS_MAX 4000000u
#define ROOTS_MIN   16u
#define RING_MIN    64u         /* KiB */
#define RING_MAX    (1u << 20)

/* 0 stands for the default, which depends on the kernel (probe/kernelLoad.c). */
static int areRecordsRight(const ebpfMonSettings *s)
{
    unsigned most = s->maxRecords ? s->maxRecords : RECORDS_MAX;

    return (!s->maxRecords || (s->maxRecords >= RECORDS_MIN && s->maxRecords <= RECORDS_MAX)) &&
           (!s->maxRoots || (s->maxRoots >= ROOTS_MIN && s->maxRoots <= most));
}

int ebpfMonSettingsCheck(ebpfMonSettings *s, char *why, size_t size)
{
    if (s->ringKiB == 0) s->ringKiB = 8192;
    if (s->wireKiB == 0) s->wireKiB = 8192;
    if (areRecordsRight(s) && s->ringKiB >= RING_MIN && s->ringKiB <= RING_MAX &&
        (s->ringKiB & (s->ringKiB - 1)) == 0 && s->wireKiB >= -1 && s->wireKiB <= (int)RING_MAX)
        return 0;
    snprintf(why, size, "maxRecords %u to %u, maxRoots %u to maxRecords, ringKiB a power of two from %u to %u, "
             "wireKiB -1 to %u", RECORDS_MIN, RECORDS_MAX, ROOTS_MIN, RING_MIN, RING_MAX, RING_MAX);
    return -1;
}

/* --- the monitor --- */

/* Before the monitor registers, and in programs without a monitor (tests of records), every function fails and says so.
 * So no caller must test for NULL. */

static ebpfMonOpStatus refuseSettings(void *arg, const ebpfMonSettings *settings, char *why, size_t size)
{
    return ebpfMonOpAbsent;
}

static long refuseStart(void *arg)
{
    return -1;
}

static long setFilter(void *arg, const ebpfMonFilter *filter, ebpfMonFilterAnswer *answer, char *why, size_t size)
{
    snprintf(why, size, "not in force: this IOC is not linked with ebpfMon, or had no memory at its start");
    memset(answer, 0, sizeof(*answer));
    return -1;
}

static int isFilterApplied(void *arg, unsigned number)
{
    return 0;
}

static void getFilter(void *arg, ebpfMonFilter *filter)
{
    *filter = ebpfMonFilterDefault;
}

/* Stands for setLevel and setReference. */
static ebpfMonOpStatus setRule(void *arg, const char *iocPattern, int value, char *why, size_t size)
{
    return ebpfMonOpAbsent;
}

static int getLevel(void *arg, unsigned i, char iocPattern[EBPFMON_PATTERN_SIZE])
{
    return -1;
}

static void resetLost(void *arg)
{
}

static ebpfMonOpStatus addList(void *arg, ebpfMonList of, ebpfMonTextReport *report, const char *pattern,
                               const char *record)
{
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus refuseTrace(void *arg, ebpfMonTextReport *report, const char *recordPattern, unsigned count,
                                   char *why, size_t size)
{
    return ebpfMonOpAbsent;
}

static ebpfMonOpStatus addReport(void *arg, ebpfMonTextReport *report, int level)
{
    return ebpfMonOpAbsent;
}

/* Used while there is no monitor: every function fails, and says so if it has a text. */
static const ebpfMonMonitorOps monitorOpsAbsent = {
    NULL, refuseSettings, refuseStart, setFilter, isFilterApplied, getFilter, setRule, getLevel, setRule, resetLost,
    resetLost, addList, refuseTrace, addReport};

/* --- logs --- */

static const struct {
    const char *name, *number;
} modes[] = {{"off", "-1"}, {"changes", "0"}, {"all", "2"}, {"burst", "1"}};

int ebpfMonLogModeParse(const char *name)
{
    const char *more = strchr(name, ' ');
    char word[16];
    int people = more && epicsStrCaseCmp(more, " people") == 0;

    snprintf(word, sizeof(word), "%.*s", people ? (int)(more - name) : (int)sizeof(word), name);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (epicsStrCaseCmp(word, modes[i].name) == 0 || epicsStrCaseCmp(word, modes[i].number) == 0)
            return (int)i | (people ? ebpfMonLogPeople : 0);
    return -1;
}

const char *ebpfMonLogModeName(ebpfMonLogMode mode)
{
    return (unsigned)mode < sizeof(modes) / sizeof(modes[0]) ? modes[mode].name : "?";
}

/* --- all tables --- */

static const ebpfMonOps absentOps = { &monitorOpsAbsent, NULL, NULL };

/* One per process, because Base calls us without a context. Written once, at the registration; any thread reads it. */
static EpicsAtomicPtrT currentOps = (EpicsAtomicPtrT)&absentOps;

const ebpfMonOps *ebpfMonOpsGet(void)
{
    return epicsAtomicGetPtrT(&currentOps);
}

void ebpfMonOpsSet(const ebpfMonOps *ops)
{
    epicsAtomicSetPtrT(&currentOps, (EpicsAtomicPtrT)ops);
}
