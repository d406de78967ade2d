/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "ebpfMonTable.h"
#include "health/hangs.h"
#include "health/lives.h"
#include "health/stills.h"

typedef struct {
    uint32_t id;    /* of the IOC */
    double   since; /* the first look that found it so (s, monotonic) */
    int      told;  /* an event has told it */
} stillIoc;

struct ebpfMonStills {
    unsigned n;
    stillIoc known[EBPFMON_TARGETS_MAX];
};

ebpfMonStills *ebpfMonStillsNew(void)
{
    return calloc(1, sizeof(ebpfMonStills));
}

void ebpfMonStillsFree(ebpfMonStills *stills)
{
    free(stills);
}

/* Why the process stands still; NULL: it does not (proc(5), state). */
static const char *findReason(const ebpfMonLife *l)
{
    if (l->gone || !l->watched)
        return NULL;
    return l->state == 'T' ? "stopped by a signal" : l->state == 't' ? "stopped by a debugger" :
           l->state == 'D' ? "waits in the kernel, and no signal ends it" : NULL;
}

static unsigned findStill(const ebpfMonStills *stills, uint32_t id)
{
    unsigned i;

    for (i = 0; i < stills->n && stills->known[i].id != id; i++)
        ;
    return i;
}

static void addStill(ebpfMonStills *stills, const ebpfMonLife *l, const char *reason, const epicsTimeStamp *at,
                     double seconds, ebpfMonHealth *health)
{
    unsigned i = findStill(stills, l->id);
    stillIoc *s = &stills->known[i];

    if (i == EBPFMON_TARGETS_MAX)
        return;
    if (i == stills->n) {
        *s = (stillIoc){ .id = l->id, .since = seconds };
        stills->n++;
    }
    if (ebpfMonHangLimit <= 0 || seconds - s->since < ebpfMonHangLimit)
        return;
    if (!s->told)
        ebpfMonHealthEventsAdd(health, at, 1, "IOC %s (pid %d) stands still since %.0f s (%s)", l->name, (int)l->pid,
                               seconds - s->since, reason);
    s->told = 1;
    if (!health->still++)
        snprintf(health->stillText, sizeof(health->stillText), "%s stands still: %s", l->name, reason);
}

void ebpfMonStillsUpdate(ebpfMonStills *stills, const ebpfMonLife *now, unsigned n, const epicsTimeStamp *at,
                         double seconds, ebpfMonHealth *health)
{
    unsigned kept = 0;

    health->still = 0;
    health->stillText[0] = 0;
    for (unsigned i = 0; i < stills->n; i++) {
        const stillIoc *s = &stills->known[i];
        unsigned k;

        for (k = 0; k < n && now[k].id != s->id; k++)
            ;
        if (k < n && findReason(&now[k]))
            stills->known[kept++] = *s;
        else if (k < n && !now[k].gone && s->told) /* if it has ended, another event tells this */
            ebpfMonHealthEventsAdd(health, at, 0, "IOC %s (pid %d) goes on; it stood still for %.0f s", now[k].name,
                                   (int)now[k].pid, seconds - s->since);
    }
    stills->n = kept;
    for (unsigned k = 0; k < n; k++) {
        const char *reason = findReason(&now[k]);

        if (reason)
            addStill(stills, &now[k], reason, at, seconds, health);
    }
}

int ebpfMonStillsAreWaiting(const ebpfMonStills *stills)
{
    return stills->n > 0;
}
