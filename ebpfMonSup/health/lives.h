/* SPDX-License-Identifier: BSD-3-Clause */
/* Which IOCs started, ended and came back, from a list of those seen each second. Publishing thread only. */
#ifndef EBPFMON_LIVES_H
#define EBPFMON_LIVES_H

#include <stdint.h>
#include <epicsTime.h>
#include "model/healthValues.h"

#define EBPFMON_GONE_SECONDS 600 /* an IOC that ended is missed this long */

/* An IOC as it is seen this second. */
typedef struct {
    uint32_t id;      /* never used twice */
    int32_t  pid;
    char     name[EBPFMON_HEALTH_NAME];
    int      gone;    /* it ended a moment ago */
    int      watched; /* if it is not, it makes no event */
    int      fresh;   /* it was started after the monitor */
    double   uptime;  /* s */
} ebpfMonLife;

typedef struct ebpfMonLives ebpfMonLives;

ebpfMonLives *ebpfMonLivesNew(void); /* NULL without memory */
void ebpfMonLivesFree(ebpfMonLives *lives);

/* Compares with the last time; "health" gets events, gone and restarts. */
void ebpfMonLivesUpdate(ebpfMonLives *lives, const ebpfMonLife *now, unsigned n, const epicsTimeStamp *at,
                        ebpfMonHealth *health);

/* Nonzero: this IOC was seen in the last update, and has not ended. */
int ebpfMonLivesIsAlive(const ebpfMonLives *lives, uint32_t id);

#endif
