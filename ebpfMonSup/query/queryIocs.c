/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsString.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "ioc/procInfo.h"
#include "query/queryIocs.h"

#define RETRY_NS (10 * EBPFMON_SECOND_NS) /* a module may be loaded later */

typedef struct {
    pid_t    pid;
    uint32_t iocId;
    char     name[EBPFMON_IOCNAME_SIZE];
    int      present;  /* in the list of targets still */
    int      on;
    uint64_t retryAt;
    unsigned probes;
    unsigned places, stepped; /* where it is probed, and how many of these are single-stepped */
    ebpfMonProbe *probe;
    size_t   room;
} Followed;

struct ebpfMonQueryIocs {
    const ebpfMonQuerySpec *spec;
    ebpfMonQueryPrograms *programs;
    ebpfMonQueryNames *names;
    Followed *ioc;
    size_t   count, room;
    char     trouble[200];
};

ebpfMonQueryIocs *ebpfMonQueryIocsNew(const ebpfMonQuerySpec *spec, ebpfMonQueryPrograms *programs, ebpfMonQueryNames *names)
{
    ebpfMonQueryIocs *q = calloc(1, sizeof(*q));

    if (q) {
        q->spec = spec;
        q->programs = programs;
        q->names = names;
    }
    return q;
}

static int isFunction(const ebpfMonQueryIocs *q)
{
    return q->spec->order.source <= ebpfMonQueryCall;
}

static void leave(ebpfMonQueryIocs *q, Followed *f, int hasEnded)
{
    if (f->probes)
        (hasEnded ? ebpfMonCloserCloseLater : ebpfMonCloserClose)(f->probe, f->probes);
    f->probes = 0;
    free(f->probe);
    f->probe = NULL;
    f->room = 0;
    ebpfMonQueryProgramsRemoveProcess(q->programs, f->pid);
}

void ebpfMonQueryIocsFree(ebpfMonQueryIocs *q)
{
    if (!q)
        return;
    for (size_t i = 0; i < q->count; i++)
        leave(q, &q->ioc[i], 0);
    free(q->ioc);
    free(q);
}

/* Copies the targets that match; those that it knows already are marked. */
static void findTargets(ebpfMonQueryIocs *q, ebpfMonTargets *targets)
{
    for (size_t i = 0; i < q->count; i++)
        q->ioc[i].present = 0;
    ebpfMonTargetsLock(targets);
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next) {
        size_t i = 0;

        if (t->gone || t->level == ebpfMonLevelOff || !epicsStrGlobMatch(t->name, q->spec->ioc))
            continue;
        while (i < q->count && q->ioc[i].iocId != t->iocId)
            i++;
        if (i == q->count) {
            if (ebpfMonArrayGrow(&q->ioc, &q->room, q->count + 1, 8, sizeof(*q->ioc)))
                break;
            q->ioc[q->count] = (Followed){ .pid = t->pid, .iocId = t->iocId };
            memcpy(q->ioc[q->count++].name, t->name, sizeof(t->name));
        }
        q->ioc[i].present = 1;
    }
    ebpfMonTargetsUnlock(targets);
}

static void forgetEnded(ebpfMonQueryIocs *q)
{
    size_t kept = 0;

    for (size_t i = 0; i < q->count; i++) {
        if (q->ioc[i].present)
            q->ioc[kept++] = q->ioc[i];
        else
            leave(q, &q->ioc[i], 1);
    }
    q->count = kept;
}

typedef int (*SetProbe)(ebpfMonQueryPrograms *programs, const char *path, const uint64_t *offsets, unsigned count, pid_t pid,
                        ebpfMonProbe probe[2 * EBPFMON_FUNCTION_SITES], unsigned *probes);

/* The name of each place, for keys. */
static void noteNames(ebpfMonQueryIocs *q, const Followed *f, const ebpfMonFunctionPlaces *places)
{
    ebpfMonQueryNames *n = q->names;

    for (unsigned i = 0; i < places->count; i++) {
        if (ebpfMonArrayGrow(&n->function, &n->room, n->functions + 1, 16, sizeof(*n->function)))
            return;
        n->function[n->functions] = (ebpfMonQueryFunction){ .iocId = f->iocId, .address = places->place[i].address };
        ebpfMonTextCopy(n->function[n->functions++].name, sizeof(n->function->name), places->place[i].name);
    }
}

/* Sets probes at the places in one file. Returns how many places there are, of which "places" is the first; *err. */
static unsigned setInFile(ebpfMonQueryIocs *q, Followed *f, const ebpfMonFunctionPlace *place, unsigned count, SetProbe set,
                          int *err)
{
    uint64_t offset[EBPFMON_FUNCTION_SITES];
    unsigned n = 0, probes, stepped = 0;

    for (; n < count && strcmp(place[n].path, place[0].path) == 0; n++) {
        offset[n] = place[n].site.offset;
        stepped += place[n].site.cls == ebpfMonSiteStepped;
    }
    *err = ebpfMonArrayGrow(&f->probe, &f->room, f->probes + 2 * EBPFMON_FUNCTION_SITES, 16, sizeof(*f->probe)) ? ENOMEM
         : set(q->programs, place[0].path, offset, n, f->pid, f->probe + f->probes, &probes);
    if (!*err) {
        f->probes += probes;
        f->places += n;
        f->stepped += stepped;
    }
    return n;
}

/* Sets probes at one function of one IOC, or at those that match a pattern. 0, or -1: *why. */
static int setProbes(ebpfMonQueryIocs *q, Followed *f, const ebpfMonFunctionWanted *wanted, SetProbe set, char *why,
                     size_t size)
{
    ebpfMonFunctionPlaces *places;
    int err = 0;

    if (wanted->needReturn && ebpfMonProcSeccomp(f->pid) == 2) {
        snprintf(why, size, "it runs under seccomp, which may forbid return probes");
        return -1;
    }
    places = ebpfMonFunctionFind(f->pid, wanted, why, size);
    if (!places)
        return -1;
    for (unsigned i = 0; i < places->count && !err;)
        i += setInFile(q, f, &places->place[i], places->count - i, set, &err);
    if (err)
        snprintf(why, size, "%s cannot be probed: %s", wanted->symbol, strerror(err));
    else if (wanted == &q->spec->function)
        noteNames(q, f, places);
    free(places);
    return err ? -1 : 0;
}

/* All probes of one IOC. First those that tell which record is in hand. */
static int setAllProbes(ebpfMonQueryIocs *q, Followed *f, char *why, size_t size)
{
    static const ebpfMonFunctionWanted process = { .object = "*", .symbol = "dbProcess", .args = EBPFMON_ARG1,
                                                   .needReturn = 1 };

    if (q->spec->order.needsRecord && setProbes(q, f, &process, ebpfMonQueryProgramsProbeRecord, why, size))
        return -1;
    return isFunction(q) ? setProbes(q, f, &q->spec->function, ebpfMonQueryProgramsProbe, why, size) : 0;
}

/* Looks at one IOC from now on. */
static void enter(ebpfMonQueryIocs *q, Followed *f, uint64_t now)
{
    char why[160] = "";
    int err;

    if (setAllProbes(q, f, why, sizeof(why))) {
        leave(q, f, 0);
        f->places = f->stepped = 0;
        f->retryAt = now + RETRY_NS;
        snprintf(q->trouble, sizeof(q->trouble), "%.60s: %.130s", f->name, why);
        return;
    }
    err = ebpfMonQueryProgramsAddProcess(q->programs, f->pid, f->iocId);
    f->on = !err;
    if (err) {
        f->retryAt = now + RETRY_NS;
        snprintf(q->trouble, sizeof(q->trouble), "%.60s: %s", f->name, strerror(err));
    }
}

void ebpfMonQueryIocsFollow(ebpfMonQueryIocs *q, ebpfMonTargets *targets, ebpfMonWorker *worker)
{
    uint64_t now = ebpfMonClockMonotonic();
    int failed = 0;

    findTargets(q, targets);
    forgetEnded(q);
    for (size_t i = 0; i < q->count; i++) {
        if (!q->ioc[i].on && now >= q->ioc[i].retryAt) {
            enter(q, &q->ioc[i], now);
            ebpfMonWorkerGiveSign(worker);
        }
        failed |= !q->ioc[i].on;
    }
    if (!failed)
        q->trouble[0] = 0;
}

unsigned ebpfMonQueryIocsCount(const ebpfMonQueryIocs *q, double *stepped)
{
    unsigned on = 0, probes = 0, slow = 0;

    for (size_t i = 0; i < q->count; i++) {
        on += q->ioc[i].on != 0;
        probes += q->ioc[i].places;
        slow += q->ioc[i].stepped;
    }
    *stepped = probes ? (double)slow / probes : 0;
    return on;
}

const char *ebpfMonQueryIocsGetTrouble(const ebpfMonQueryIocs *q)
{
    return q->trouble;
}
