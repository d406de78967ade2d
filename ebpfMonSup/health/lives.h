/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the IOCs of this second with those of the second before: which IOCs started, ended and came back.
 * Publishing thread only. */
#ifndef EBPFMON_LIVES_H
#define EBPFMON_LIVES_H

#include <compilerDependencies.h>
#include <epicsTime.h>
#include <stdint.h>
#include "model/published.h"

/* --- events ---
 *
 * Adds to the list of health events: an IOC ended or came back, a thread hangs.
 */

/* Adds a line with the time "at" to "health", and writes it to the error log (errlogInfo). If "health" has
 * EBPFMON_HEALTH_EVENTS lines, the new line replaces the oldest. "isTrouble": somebody has to act. No
 * lock; the thread that owns "health". */
void ebpfMonHealthEventsAdd(ebpfMonHealth *health, const epicsTimeStamp *at, int isTrouble, const char *format, ...)
    EPICS_PRINTF_STYLE(4, 5);

/* Adds what is wrong with an IOC now, unless "health" has something worse of it. */
void ebpfMonHealthAddIll(ebpfMonHealth *health, uint32_t iocId, int severity, const char *text);

/* --- lives --- */

/* An IOC as it is seen this second. */
typedef struct {
    uint32_t id;      /* never used twice */
    int32_t  pid;
    char     name[EBPFMON_HEALTH_NAME];
    int      gone;    /* it ended a moment ago */
    uint32_t exitCode; /* as in ebpfMonExitEvent, if hasExit */
    int      hasExit;
    int      watched; /* 0: it makes no event */
    int      fresh;   /* it started after the monitor */
    double   uptime;  /* s; of one that is gone only if hasExit */
    char     state;   /* of its process (ebpfMonProcStat); 0: not known */
} ebpfMonLife;

typedef struct ebpfMonLives ebpfMonLives;

ebpfMonLives *ebpfMonLivesNew(void); /* NULL without memory */
void ebpfMonLivesFree(ebpfMonLives *lives);

/* "now": the IOCs of this second, "n" of them; "at": the time for events; "seconds": the monotonic time, by
 * which absences are measured, because somebody may set the clock. Adds events to "health", sets health->gone and its
 * rows, and counts health->restarts. An IOC that ended is missing until it is back or acknowledged. */
void ebpfMonLivesUpdate(ebpfMonLives *lives, const ebpfMonLife *now, unsigned n, const epicsTimeStamp *at,
                        double seconds, ebpfMonHealth *health);

/* An IOC that was gone before this monitor began ("at", "seconds": as above). It is missing from now on, unless an IOC
 * of this name runs. Makes no event. */
void ebpfMonLivesRestore(ebpfMonLives *lives, const ebpfMonGoneIoc *ioc, const epicsTimeStamp *at, double seconds);

/* Forgets the IOCs that have ended. */
void ebpfMonLivesAcknowledge(ebpfMonLives *lives);

/* Nonzero: this IOC was in the list of the last update, and had not ended. */
int ebpfMonLivesIsAlive(const ebpfMonLives *lives, uint32_t id);

#endif
