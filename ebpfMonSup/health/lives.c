/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsStdio.h>
#include <errlog.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "common/text.h"
#include "ebpfMonEvent.h"
#include "ebpfMonTable.h"
#include "health/lives.h"
#include "module/modules.h"

/* --- events --- */

void ebpfMonHealthEventsAdd(ebpfMonHealth *health, const epicsTimeStamp *at, int isTrouble, const char *format, ...)
{
    char *line, text[EBPFMON_HEALTH_LINE];
    size_t used;
    va_list ap;

    health->eventHead = (health->eventHead + 1) % EBPFMON_HEALTH_EVENTS;
    if (health->events < EBPFMON_HEALTH_EVENTS)
        health->events++;
    health->isEventTrouble = isTrouble;
    line = health->event[health->eventHead];
    used = epicsTimeToStrftime(line, EBPFMON_HEALTH_LINE, "%Y-%m-%d %H:%M:%S.%03f ", at);
    va_start(ap, format);
    epicsVsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    ebpfMonTextCopy(line + used, EBPFMON_HEALTH_LINE - used, text);
    ebpfMonModulesTellEvent(at, line + used);
    errlogSevPrintf(errlogInfo, "ebpfMon: %s\n", line + used);
}

void ebpfMonHealthAddIll(ebpfMonHealth *health, uint32_t iocId, int severity, const char *text)
{
    unsigned i;

    for (i = 0; i < health->ills && health->ill[i].iocId != iocId; i++)
        ;
    if (i == EBPFMON_HEALTH_ILLS || (i < health->ills && health->ill[i].severity > severity))
        return;
    health->ills += i == health->ills;
    health->ill[i].iocId = iocId;
    health->ill[i].severity = severity;
    ebpfMonTextCopy(health->ill[i].text, sizeof(health->ill[i].text), text);
}

/* --- lives --- */

#define DAY 43200.0 /* s; within half a day the time of day is enough */
#define RESTORED 0  /* id of a life that ended before this monitor began */

struct ebpfMonLives {
    uint32_t gone[EBPFMON_TARGETS_MAX]; /* those that had ended at the last update */
    unsigned goneCount;
    unsigned n;
    struct {
        ebpfMonLife life;
        double goneAt; /* s, monotonic */
        epicsTimeStamp goneTime;
        int seen;      /* this second */
        int isAwaited; /* it is gone; how it ended, which the event thread reads, comes a little later */
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

/* " (signal 11, core dump)", as wait(2) tells it; " (out of memory)"; empty: not known. */
static void describeEnd(const ebpfMonLife *l, char *text, size_t size)
{
    int code = (int)l->exitCode;

    text[0] = 0;
    if (l->hasExit && code & EBPFMON_EXIT_OOM && WIFSIGNALED(code))
        snprintf(text, size, " (out of memory)");
    else if (l->hasExit && WIFSIGNALED(code))
        snprintf(text, size, " (signal %d%s)", WTERMSIG(code), WCOREDUMP(code) ? ", core dump" : "");
    else if (l->hasExit)
        snprintf(text, size, " (exit status %d)", WEXITSTATUS(code));
}

/* "end": as the IOC is listed now; NULL: it is not. */
static void endLife(ebpfMonLives *lives, unsigned i, const ebpfMonLife *end, const epicsTimeStamp *at, double seconds,
                    ebpfMonHealth *health)
{
    ebpfMonLife *l = &lives->known[i].life;
    char how[60];

    l->gone = 1;
    if (end) {
        l->exitCode = end->exitCode;
        l->hasExit = end->hasExit;
        if (end->hasExit)
            l->uptime = end->uptime;
    }
    describeEnd(l, how, sizeof(how));
    if (!lives->known[i].isAwaited)
        lives->known[i].goneAt = seconds;
    lives->known[i].goneTime = *at;
    ebpfMonHealthEventsAdd(health, at, 1, "IOC %s (pid %d) ended%s; it ran %.*f s", l->name, (int)l->pid, how,
                           l->uptime < 10 ? 1 : 0, l->uptime);
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
        if (lives->known[i].isAwaited && !lives->known[i].life.gone && strcmp(lives->known[i].life.name, l->name) == 0)
            endLife(lives, i, NULL, at, seconds, health);
    for (i = 0; i < lives->n; i++)
        if (lives->known[i].life.gone && strcmp(lives->known[i].life.name, l->name) == 0)
            break;
    if (i < lives->n && lives->known[i].life.id == RESTORED && !l->fresh) {
        ; /* it came back while no monitor watched it */
    } else if (i < lives->n) {
        ebpfMonHealthEventsAdd(health, at, 0, "IOC %s (pid %d) restarted; it was away %.0f s (pid %d)", l->name,
                               (int)l->pid, seconds - lives->known[i].goneAt,
                               (int)lives->known[i].life.pid);
        health->restarts++;
    } else {
        if (l->fresh)
            ebpfMonHealthEventsAdd(health, at, 0, "IOC %s (pid %d) started", l->name, (int)l->pid);
        i = findPlace(lives);
    }
    lives->known[i].life = *l;
    lives->known[i].life.gone = 0;
    lives->known[i].seen = 1;
    lives->known[i].isAwaited = 0;
    if (l->gone) /* it started and ended between two updates */
        endLife(lives, i, l, at, seconds, health);
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
        if (now[k].gone && !now[k].hasExit && !lives->known[i].isAwaited) {
            lives->known[i].isAwaited = 1;
            lives->known[i].goneAt = seconds;
        } else if (now[k].gone)
            endLife(lives, i, &now[k], at, seconds, health);
        else if (now[k].watched)
            lives->known[i].life = now[k];
        else /* the operator has switched it off, so its end is no event */
            forgetLife(lives, i);
    }
}

static void setGoneRow(const ebpfMonLives *lives, unsigned i, double seconds, ebpfMonGoneIoc *row)
{
    const ebpfMonLife *l = &lives->known[i].life;
    char since[20], how[60];

    epicsTimeToStrftime(since, sizeof(since), seconds - lives->known[i].goneAt < DAY ? "%H:%M" : "%m-%d",
                        &lives->known[i].goneTime);
    describeEnd(l, how, sizeof(how));
    memset(row, 0, sizeof(*row)); /* rows are compared as bytes */
    snprintf(row->name, sizeof(row->name), "%s", l->name);
    snprintf(row->note, sizeof(row->note), l->pid ? "gone since %s%s" : "not there when ebpfMon started at %s%s", since,
             how);
    row->time = lives->known[i].goneTime;
    row->pid = l->pid;
    row->hasExit = l->hasExit;
    row->exitCode = l->exitCode;
}

/* Counts the IOCs that are gone, and lists those that ended last. */
static void listGone(const ebpfMonLives *lives, double seconds, ebpfMonHealth *health)
{
    double before = HUGE_VAL;

    health->gone = health->goneRows = 0;
    health->goneText[0] = 0;
    for (unsigned i = 0; i < lives->n; i++)
        health->gone += !!lives->known[i].life.gone;
    while (health->goneRows < EBPFMON_HEALTH_GONE) {
        double latest = -HUGE_VAL; /* those that ended before the host started have times below 0 */

        for (unsigned i = 0; i < lives->n; i++)
            if (lives->known[i].life.gone && lives->known[i].goneAt < before && lives->known[i].goneAt > latest)
                latest = lives->known[i].goneAt;
        if (latest <= -HUGE_VAL)
            return;
        for (unsigned i = 0; i < lives->n && health->goneRows < EBPFMON_HEALTH_GONE; i++)
            if (lives->known[i].life.gone && lives->known[i].goneAt >= latest && lives->known[i].goneAt <= latest)
                setGoneRow(lives, i, seconds, &health->goneIoc[health->goneRows++]);
        snprintf(health->goneText, sizeof(health->goneText), "%s %s", health->goneIoc[0].name, health->goneIoc[0].note);
        before = latest;
    }
}

static int hadEnded(const ebpfMonLives *lives, uint32_t id)
{
    for (unsigned i = 0; i < lives->goneCount; i++)
        if (lives->gone[i] == id)
            return 1;
    return 0;
}

static void noteEnded(ebpfMonLives *lives, const ebpfMonLife *now, unsigned n)
{
    lives->goneCount = 0;
    for (unsigned k = 0; k < n && lives->goneCount < EBPFMON_TARGETS_MAX; k++)
        if (now[k].gone)
            lives->gone[lives->goneCount++] = now[k].id;
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
            endLife(lives, i, NULL, at, seconds, health);
    }
    for (unsigned k = 0; k < n; k++)
        /* "now" may still list an IOC that has ended, after its successor has taken its place in "known" */
        if (findLife(lives, now[k].id) == lives->n && now[k].watched && !(now[k].gone && hadEnded(lives, now[k].id)))
            addLife(lives, &now[k], at, seconds, health);
    noteEnded(lives, now, n);
    listGone(lives, seconds, health);
}

void ebpfMonLivesRestore(ebpfMonLives *lives, const ebpfMonGoneIoc *ioc, const epicsTimeStamp *at, double seconds)
{
    double ago = epicsTimeDiffInSeconds(at, &ioc->time);
    unsigned i;

    for (i = 0; i < lives->n; i++)
        if (strcmp(lives->known[i].life.name, ioc->name) == 0)
            return;
    i = findPlace(lives);
    memset(&lives->known[i], 0, sizeof(lives->known[i]));
    lives->known[i].life.id = RESTORED;
    lives->known[i].life.gone = 1;
    lives->known[i].life.pid = ioc->pid;
    lives->known[i].life.hasExit = ioc->hasExit;
    lives->known[i].life.exitCode = ioc->exitCode;
    ebpfMonTextCopy(lives->known[i].life.name, sizeof(lives->known[i].life.name), ioc->name);
    lives->known[i].goneAt = seconds - (ago > 0 ? ago : 0);
    lives->known[i].goneTime = ioc->time;
}

void ebpfMonLivesAcknowledge(ebpfMonLives *lives)
{
    for (unsigned i = lives->n; i-- > 0;)
        if (lives->known[i].life.gone)
            forgetLife(lives, i);
}

int ebpfMonLivesIsAlive(const ebpfMonLives *lives, uint32_t id)
{
    unsigned i = findLife(lives, id);

    return i < lives->n && !lives->known[i].life.gone && !lives->known[i].isAwaited;
}
