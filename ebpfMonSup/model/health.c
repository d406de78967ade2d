/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsExport.h>
#include <epicsStdio.h>
#include <epicsStdlib.h>
#include <epicsString.h>
#include <errlog.h>

#include "model/health.h"

double ebpfMonHangLimit = 5;
epicsExportAddress(double, ebpfMonHangLimit);

const char *ebpfMonHealthEvent(const ebpfMonHealth *h, unsigned i)
{
    if (i >= h->events || i >= EBPFMON_HEALTH_EVENTS)
        return NULL;
    return h->event[(h->eventHead + EBPFMON_HEALTH_EVENTS - i) % EBPFMON_HEALTH_EVENTS];
}

int ebpfMonHealthBad(const ebpfMonHealth *h)
{
    return h->gone || h->hangs;
}

static void event(ebpfMonHealth *h, const epicsTimeStamp *at, const char *format, ...) EPICS_PRINTF_STYLE(3, 4);

static void event(ebpfMonHealth *h, const epicsTimeStamp *at, const char *format, ...)
{
    char *line;
    size_t used;
    va_list ap;

    h->eventHead = (h->eventHead + 1) % EBPFMON_HEALTH_EVENTS;
    if (h->events < EBPFMON_HEALTH_EVENTS)
        h->events++;
    line = h->event[h->eventHead];
    used = epicsTimeToStrftime(line, EBPFMON_HEALTH_LINE, "%Y-%m-%d %H:%M:%S.%03f ", at);
    va_start(ap, format);
    epicsVsnprintf(line + used, EBPFMON_HEALTH_LINE - used, format, ap);
    va_end(ap);
    errlogSevPrintf(errlogInfo, "ebpfMon: %s\n", line + used);
}

/* --- scan threads ---------------------------------------------------------------------------------------------- */

void ebpfMonScanAdd(ebpfMonScanWindow *w, const ebpfMonScanSample *now, uint64_t present, ebpfMonScanRow *row)
{
    static const ebpfMonScanSample nothing;
    const unsigned size = EBPFMON_SCAN_SECONDS + 1;
    const ebpfMonScanSample *old;

    if (w->n && now->passes < w->at[w->newest].passes) /* another life of its table entry */
        w->n = 0;
    w->newest = w->n ? (w->newest + 1) % size : 0;
    w->at[w->newest] = *now;
    if (w->n < size)
        w->n++;
    old = &w->at[(w->newest + size - (w->n - 1)) % size];
    if (w->n == 1 && now->passes) /* counted before we looked: all of it */
        old = &nothing;
    if (now->passes > old->passes) {
        uint64_t sum = now->sum - old->sum;

        row->period = (double)sum / (double)(now->passes - old->passes) / 1e9;
        row->busy = sum ? 100.0 * (double)(now->busy - old->busy) / (double)sum : 0;
    }
    row->worst = (double)now->max / 1e9;
    row->late = now->late;
    if ((double)present / 1e9 > row->period)
        row->period = (double)present / 1e9;
    if ((double)present / 1e9 > row->worst)
        row->worst = (double)present / 1e9;
}

double ebpfMonScanPeriod(const char *choice)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = { { "", 1 }, { "second", 1 }, { "seconds", 1 }, { "minute", 60 }, { "minutes", 60 }, { "hour", 3600 },
                  { "hours", 3600 } };
    double number;
    char *unit;

    if (epicsParseDouble(choice, &number, &unit) || number <= 0)
        return 0;
    if (epicsStrCaseCmp(unit, "Hz") == 0 || epicsStrCaseCmp(unit, "Hertz") == 0)
        return 1 / number;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (epicsStrCaseCmp(unit, units[i].name) == 0)
            return number * units[i].seconds;
    return 0;
}

/* --- life and death -------------------------------------------------------------------------------------------- */

static void drop(ebpfMonLives *lives, unsigned i)
{
    lives->known[i] = lives->known[--lives->n];
}

static void endOf(ebpfMonLives *lives, unsigned i, const epicsTimeStamp *at, ebpfMonHealth *h)
{
    const ebpfMonLife *l = &lives->known[i].life;

    lives->known[i].life.gone = 1;
    lives->known[i].goneAt = *at;
    event(h, at, "IOC %s (pid %d) ended; it ran %.0f s", l->name, (int)l->pid, l->uptime);
}

/* One that is new to us: does it take the place of one that ended? */
static void newOne(ebpfMonLives *lives, const ebpfMonLife *l, const epicsTimeStamp *at, ebpfMonHealth *h)
{
    const unsigned room = sizeof(lives->known) / sizeof(lives->known[0]);
    unsigned i, oldest = 0;

    for (i = 0; i < lives->n; i++)
        if (lives->known[i].life.gone && strcmp(lives->known[i].life.name, l->name) == 0)
            break;
    if (i < lives->n) {
        event(h, at, "IOC %s (pid %d) restarted; it was away %.0f s (pid %d)", l->name, (int)l->pid,
              epicsTimeDiffInSeconds(at, &lives->known[i].goneAt), (int)lives->known[i].life.pid);
        h->restarts++;
    } else {
        if (l->fresh)
            event(h, at, "IOC %s (pid %d) started", l->name, (int)l->pid);
        if (lives->n == room) { /* then some have ended: fewer than that are alive */
            for (i = 0; i < room; i++)
                if (lives->known[i].life.gone && (!lives->known[oldest].life.gone ||
                    epicsTimeDiffInSeconds(&lives->known[oldest].goneAt, &lives->known[i].goneAt) > 0))
                    oldest = i;
            i = oldest;
        } else {
            i = lives->n++;
        }
    }
    if (l->id > lives->lastId)
        lives->lastId = l->id;
    lives->known[i].life = *l;
    lives->known[i].life.gone = 0;
    lives->known[i].seen = 1;
    if (l->gone) /* it came and ended between two looks */
        endOf(lives, i, at, h);
}

void ebpfMonLivesUpdate(ebpfMonLives *lives, const ebpfMonLife *now, unsigned n, const epicsTimeStamp *at,
                        ebpfMonHealth *h)
{
    unsigned i, k;

    for (i = 0; i < lives->n; i++)
        lives->known[i].seen = 0;
    /* who ended before who came: so that a new life finds its old one */
    for (k = 0; k < n; k++) {
        for (i = 0; i < lives->n && lives->known[i].life.id != now[k].id; i++)
            ;
        if (i == lives->n)
            continue;
        lives->known[i].seen = 1;
        if (lives->known[i].life.gone)
            continue;
        if (!now[k].gone) {
            if (now[k].watched)
                lives->known[i].life = now[k];
            else /* nobody asks for it any more */
                drop(lives, i);
        } else {
            endOf(lives, i, at, h);
        }
    }
    for (i = 0; i < lives->n; i++) {
        if (!lives->known[i].seen && !lives->known[i].life.gone)
            endOf(lives, i, at, h);
        if (lives->known[i].life.gone && epicsTimeDiffInSeconds(at, &lives->known[i].goneAt) > EBPFMON_GONE_SECONDS)
            drop(lives, i--);
    }
    for (k = 0; k < n; k++) {
        for (i = 0; i < lives->n && lives->known[i].life.id != now[k].id; i++)
            ;
        /* one that ended may still be shown when its successor has taken its place */
        if (i == lives->n && now[k].watched && !(now[k].gone && now[k].id <= lives->lastId))
            newOne(lives, &now[k], at, h);
    }
    h->gone = 0;
    for (i = 0; i < lives->n; i++)
        h->gone += !!lives->known[i].life.gone;
}

static int isAlive(const ebpfMonLives *lives, uint32_t id)
{
    for (unsigned i = 0; i < lives->n; i++)
        if (lives->known[i].life.id == id)
            return !lives->known[i].life.gone;
    return 0;
}

void ebpfMonHangsUpdate(ebpfMonHangs *hangs, const ebpfMonHang *now, unsigned n, const ebpfMonLives *lives,
                        const epicsTimeStamp *at, ebpfMonHealth *h)
{
    unsigned i, k;

    if (n > EBPFMON_HEALTH_HANGS)
        n = EBPFMON_HEALTH_HANGS;
    for (i = 0; i < hangs->n; i++) {
        const ebpfMonHang *old = &hangs->known[i];

        for (k = 0; k < n && (now[k].tid != old->tid || now[k].begin != old->begin); k++)
            ;
        if (k == n && isAlive(lives, old->id))
            event(h, at, "%s hangs no more, after %.0f s", old->who, old->since);
    }
    for (k = 0; k < n; k++) {
        for (i = 0; i < hangs->n && (now[k].tid != hangs->known[i].tid || now[k].begin != hangs->known[i].begin); i++)
            ;
        if (i == hangs->n)
            event(h, at, "%s hangs since %.0f s: %s", now[k].who, now[k].since, now[k].what);
    }
    for (k = 0; k < n; k++)
        hangs->known[k] = now[k];
    hangs->n = h->hangs = n;
}
