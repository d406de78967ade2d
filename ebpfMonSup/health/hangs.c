/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "health/hangs.h"
#include "health/healthEvents.h"

struct ebpfMonHangs {
    unsigned n;
    ebpfMonHang known[EBPFMON_HANGS_MAX];
};

ebpfMonHangs *ebpfMonHangsNew(void)
{
    return calloc(1, sizeof(ebpfMonHangs));
}

void ebpfMonHangsFree(ebpfMonHangs *hangs)
{
    free(hangs);
}

static int isListed(const ebpfMonHang *list, unsigned n, const ebpfMonHang *hang)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i].tid == hang->tid && list[i].begin == hang->begin)
            return 1;
    return 0;
}

void ebpfMonHangsUpdate(ebpfMonHangs *hangs, const ebpfMonHang *now, unsigned n, const ebpfMonLives *lives,
                        const epicsTimeStamp *at, ebpfMonHealth *health)
{
    unsigned i;

    if (n > EBPFMON_HANGS_MAX)
        n = EBPFMON_HANGS_MAX;
    for (i = 0; i < hangs->n; i++) {
        const ebpfMonHang *old = &hangs->known[i];

        if (!isListed(now, n, old) && ebpfMonLivesIsAlive(lives, old->id))
            ebpfMonHealthEventsAdd(health, at, "%s hangs no more, after %.0f s", old->who, old->since);
    }
    for (i = 0; i < n; i++)
        if (!isListed(hangs->known, hangs->n, &now[i]))
            ebpfMonHealthEventsAdd(health, at, "%s hangs since %.0f s: %s", now[i].who, now[i].since, now[i].what);
    for (i = 0; i < n; i++)
        hangs->known[i] = now[i];
    hangs->n = health->hangs = n;
}
