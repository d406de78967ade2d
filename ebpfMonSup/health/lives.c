/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "ebpfMonTable.h"
#include "health/healthEvents.h"
#include "health/lives.h"

struct ebpfMonLives {
    uint32_t lastId; /* the highest one so far */
    unsigned n;
    struct {
        ebpfMonLife life;
        double goneAt; /* s, monotonic */
        int seen;      /* this second */
    } known[2 * EBPFMON_TARGETS_MAX];
};

ebpfMonLives *ebpfMonLivesNew(void)
{
    return calloc(1, sizeof(ebpfMonLives));
}

void ebpfMonLivesFree(ebpfMonLives *lives)
{
    free(lives);
}

/* The index in known; n: it is not there. */
static unsigned findLife(const ebpfMonLives *lives, uint32_t id)
{
    unsigned i;

    for (i = 0; i < lives->n && lives->known[i].life.id != id; i++)
        ;
    return i;
}

static void forgetLife(ebpfMonLives *lives, unsigned i)
{
    lives->known[i] = lives->known[--lives->n];
}

static void endLife(ebpfMonLives *lives, unsigned i, const epicsTimeStamp *at, double seconds, ebpfMonHealth *health)
{
    const ebpfMonLife *l = &lives->known[i].life;

    lives->known[i].life.gone = 1;
    lives->known[i].goneAt = seconds;
    ebpfMonHealthEventsAdd(health, at, "IOC %s (pid %d) ended; it ran %.0f s", l->name, (int)l->pid, l->uptime);
}

/* A place for a new life; if all are taken, the place of the life that ended first. There are more places than
 * living IOCs. */
static unsigned findPlace(ebpfMonLives *lives)
{
    unsigned oldest = 0;

    if (lives->n < sizeof(lives->known) / sizeof(lives->known[0]))
        return lives->n++;
    for (unsigned i = 0; i < lives->n; i++)
        if (lives->known[i].life.gone && (!lives->known[oldest].life.gone ||
            lives->known[oldest].goneAt > lives->known[i].goneAt))
            oldest = i;
    return oldest;
}

/* Adds an IOC that is seen for the first time. If an IOC of this name has ended, this is its restart, and takes its
 * place. */
static void addLife(ebpfMonLives *lives, const ebpfMonLife *l, const epicsTimeStamp *at, double seconds,
                    ebpfMonHealth *health)
{
    unsigned i;

    for (i = 0; i < lives->n; i++)
        if (lives->known[i].life.gone && strcmp(lives->known[i].life.name, l->name) == 0)
            break;
    if (i < lives->n) {
        ebpfMonHealthEventsAdd(health, at, "IOC %s (pid %d) restarted; it was away %.0f s (pid %d)", l->name,
                               (int)l->pid, seconds - lives->known[i].goneAt,
                               (int)lives->known[i].life.pid);
        health->restarts++;
    } else {
        if (l->fresh)
            ebpfMonHealthEventsAdd(health, at, "IOC %s (pid %d) started", l->name, (int)l->pid);
        i = findPlace(lives);
    }
    if (l->id > lives->lastId)
        lives->lastId = l->id;
    lives->known[i].life = *l;
    lives->known[i].life.gone = 0;
    lives->known[i].seen = 1;
    if (l->gone) /* it started and ended between two updates */
        endLife(lives, i, at, seconds, health);
}

static void updateKnown(ebpfMonLives *lives, const ebpfMonLife *now, unsigned n, const epicsTimeStamp *at,
                        double seconds, ebpfMonHealth *health)
{
    for (unsigned k = 0; k < n; k++) {
        unsigned i = findLife(lives, now[k].id);

        if (i == lives->n)
            continue;
        lives->known[i].seen = 1;
        if (lives->known[i].life.gone)
            continue;
        if (now[k].gone)
            endLife(lives, i, at, seconds, health);
        else if (now[k].watched)
            lives->known[i].life = now[k];
        else /* the operator has switched it off, so its end is no event */
            forgetLife(lives, i);
    }
}

void ebpfMonLivesUpdate(ebpfMonLives *lives, const ebpfMonLife *now, unsigned n, const epicsTimeStamp *at,
                        double seconds, ebpfMonHealth *health)
{
    unsigned i;

    for (i = 0; i < lives->n; i++)
        lives->known[i].seen = 0;
    /* First the IOCs that ended, then the new ones: so a restarted IOC finds its former life. */
    updateKnown(lives, now, n, at, seconds, health);
    for (i = 0; i < lives->n; i++) {
        if (!lives->known[i].seen && !lives->known[i].life.gone)
            endLife(lives, i, at, seconds, health);
        if (lives->known[i].life.gone && seconds - lives->known[i].goneAt > EBPFMON_GONE_SECONDS)
            forgetLife(lives, i--);
    }
    for (unsigned k = 0; k < n; k++)
        /* "now" may still list an IOC that has ended, after its successor has taken its place in "known" */
        if (findLife(lives, now[k].id) == lives->n && now[k].watched && !(now[k].gone && now[k].id <= lives->lastId))
            addLife(lives, &now[k], at, seconds, health);
    health->gone = 0;
    for (i = 0; i < lives->n; i++)
        health->gone += !!lives->known[i].life.gone;
}

int ebpfMonLivesIsAlive(const ebpfMonLives *lives, uint32_t id)
{
    unsigned i = findLife(lives, id);

    return i < lives->n && !lives->known[i].life.gone;
}
