/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "health/hangs.h"
#include "health/healthEvents.h"

struct ebpfMonHangs {
    unsigned n;
    ebpfMonHang known[EBPFMON_HANGS_MAX];
    int named[EBPFMON_HANGS_MAX]; /* an event has named the record that the thread works on */
};

ebpfMonHangs *ebpfMonHangsNew(void)
{
    return calloc(1, sizeof(ebpfMonHangs));
}

void ebpfMonHangsFree(ebpfMonHangs *hangs)
{
    free(hangs);
}

/* The index of the hang in the list; n: it is not there. */
static unsigned findListed(const ebpfMonHang *list, unsigned n, const ebpfMonHang *hang)
{
    unsigned i;

    for (i = 0; i < n; i++)
        if (list[i].tid == hang->tid && list[i].begin == hang->begin)
            break;
    return i;
}

static void addHangEvent(ebpfMonHealth *health, const epicsTimeStamp *at, const ebpfMonHang *hang)
{
    ebpfMonHealthEventsAdd(health, at, 1, "%s hangs since %.0f s: %s", hang->who, hang->since, hang->what);
}

void ebpfMonHangsUpdate(ebpfMonHangs *hangs, const ebpfMonHang *now, unsigned n, const ebpfMonLives *lives,
                        const epicsTimeStamp *at, ebpfMonHealth *health)
{
    int named[EBPFMON_HANGS_MAX];
    unsigned i;

    if (n > EBPFMON_HANGS_MAX)
        n = EBPFMON_HANGS_MAX;
    for (i = 0; i < hangs->n; i++) {
        const ebpfMonHang *old = &hangs->known[i];

        if (findListed(now, n, old) == n && ebpfMonLivesIsAlive(lives, old->id))
            ebpfMonHealthEventsAdd(health, at, 0, "%s hangs no more, after %.0f s", old->who, old->since);
    }
    /* On a busy host the first reading of the stack may fail. When a later one shows the record, a second event
     * names it. */
    for (i = 0; i < n; i++) {
        unsigned known = findListed(hangs->known, hangs->n, &now[i]);
        int wasNamed = known < hangs->n && hangs->named[known];

        named[i] = wasNamed || now[i].now[0];
        if (known == hangs->n || (named[i] && !wasNamed))
            addHangEvent(health, at, &now[i]);
    }
    for (i = 0; i < n; i++) {
        hangs->known[i] = now[i];
        hangs->named[i] = named[i];
    }
    hangs->n = health->hangs = n;
}
