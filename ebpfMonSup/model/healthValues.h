/* SPDX-License-Identifier: BSD-3-Clause */
/* Published: whether the IOCs are healthy. */
#ifndef EBPFMON_HEALTHVALUES_H
#define EBPFMON_HEALTHVALUES_H

#include <stdint.h>

#define EBPFMON_HEALTH_IOCS    256
#define EBPFMON_HEALTH_SCANS   400 /* whose names fit the 16384 bytes of old CA clients */
#define EBPFMON_HEALTH_EVENTS  50
#define EBPFMON_HANG_LINES     160
#define EBPFMON_HANG_LINE      320
#define EBPFMON_HEALTH_NAME    61
#define EBPFMON_HEALTH_LINE    800
#define EBPFMON_NO_EVENT       "no event yet"
#define EBPFMON_NO_HANG        "no thread hangs"

typedef struct {
    char     name[EBPFMON_HEALTH_NAME];
    double   cpu;      /* percent of one core */
    double   mem;      /* MB resident */
    unsigned fds, fdLimit; /* 0: no limit */
    unsigned threads;
    int      clients, channels; /* of its CA server; -1: it has none, or it is not known */
    double   uptime;   /* s */
    int      isWatched;
    /* the longest of the last ten seconds or so, ms; NaN: not measured at its level */
    double   callback[3]; /* that a callback waited in its queue: low, medium, high */
    double   once;     /* … a record for scanOnce */
    double   hold;     /* that a lock set was held, of chains that are over */
    char     holder[EBPFMON_HEALTH_NAME]; /* record whose chain that was */
    double   cas;      /* percent of one core: all threads of its CA server */
} ebpfMonIocHealth;

/* A periodic scan thread; times in s. */
typedef struct {
    char     ioc[EBPFMON_HEALTH_NAME];
    char     name[40];  /* as the field SCAN has it: ".1 second" */
    double   period;    /* mean of the last ten seconds */
    double   worst;     /* since the IOC is watched */
    uint64_t late;      /* periods of more than 1.5 of the nominal one */
    double   busy;      /* percent of the period */
    char     topRoot[EBPFMON_HEALTH_NAME]; /* the record whose chain takes the most of it */
} ebpfMonScanRow;

/* Written by the health collector (health/healthCollector.h), as a whole. */
typedef struct {
    unsigned iocs;
    ebpfMonIocHealth ioc[EBPFMON_HEALTH_IOCS];
    double   cpuMax, memMax; /* of all IOCs, the most */
    double   fdMax;          /* percent of the limit in use, the most */
    double   callbackMax, onceMax, holdMax, casMax;
    unsigned scans;
    ebpfMonScanRow scan[EBPFMON_HEALTH_SCANS];
    uint64_t lateCount;
    unsigned gone;           /* ended and not back */
    unsigned hangs;          /* threads that hang */
    unsigned hangLines;      /* where they hang, as text */
    char     hangLine[EBPFMON_HANG_LINES][EBPFMON_HANG_LINE];
    uint64_t restarts;
    unsigned events;         /* in event[], newest first from eventHead on, backwards */
    unsigned eventHead;
    char     event[EBPFMON_HEALTH_EVENTS][EBPFMON_HEALTH_LINE];
} ebpfMonHealth;

/* The i-th newest event; NULL: there are not so many. */
const char *ebpfMonHealthEvent(const ebpfMonHealth *h, unsigned i);
/* Nonzero: somebody has to act. An IOC is missing, or a thread hangs. */
int ebpfMonHealthHasTrouble(const ebpfMonHealth *h);

#endif
