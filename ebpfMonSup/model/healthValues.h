/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: the health of the IOCs. */
#ifndef EBPFMON_HEALTHVALUES_H
#define EBPFMON_HEALTHVALUES_H

#include <stdint.h>

#define EBPFMON_HEALTH_IOCS    256
#define EBPFMON_HEALTH_SCANS   400 /* so many names fit into the 16384 bytes that old CA clients can read */
#define EBPFMON_HEALTH_EVENTS  50
#define EBPFMON_HANG_LINES     160
#define EBPFMON_HANG_LINE      320
#define EBPFMON_HEALTH_NAME    61
#define EBPFMON_HEALTH_LINE    800
#define EBPFMON_HEALTH_TEXT    200
#define EBPFMON_HEALTH_GONE    32
#define EBPFMON_NO_EVENT       "no event yet"
#define EBPFMON_NO_HANG        "no thread hangs"
#define EBPFMON_NO_LATE        "no scan is late"

typedef struct {
    char     name[EBPFMON_HEALTH_NAME];
    double   cpu;      /* percent of one core */
    double   mem;      /* MB of resident memory */
    unsigned fds, fdLimit; /* open files, and their limit; 0: no limit */
    unsigned threads;
    int      clients, channels; /* of its CA server; -1: it has none, or they are not known */
    double   uptime;   /* s */
    int      isWatched;
    /* the longest of about the last ten seconds, ms; NaN: not measured at its level */
    double   callback[3]; /* time that a callback waited in its queue: low, medium, high */
    double   once;     /* time that a record for scanOnce waited */
    double   hold;     /* time that a chain which has ended held its lock set */
    char     holder[EBPFMON_HEALTH_NAME]; /* root of that chain */
    double   cas;      /* percent of one core; all threads of its CA server */
} ebpfMonIocHealth;

/* An IOC that is gone. */
typedef struct {
    char     name[EBPFMON_HEALTH_NAME];
    char     note[100]; /* "gone since 13:41 (signal 11, core dumped)" */
} ebpfMonGoneIoc;

/* A periodic scan thread; times in s. */
typedef struct {
    char     ioc[EBPFMON_HEALTH_NAME];
    char     name[40];  /* as in the field SCAN: ".1 second" */
    double   period;    /* mean period of the last ten seconds */
    double   worst;     /* longest period since the IOC is watched */
    uint64_t late;      /* late periods: of more than 1.5 times the nominal one */
    double   busy;      /* percent of the period */
    char     topRoot[EBPFMON_HEALTH_NAME]; /* the slowest record: root of the chain that takes the largest part of
                                            * the period */
} ebpfMonScanRow;

/* The health collector (health/healthCollector.h) writes all of it at once. */
typedef struct {
    unsigned iocs;
    ebpfMonIocHealth ioc[EBPFMON_HEALTH_IOCS];
    double   cpuMax, memMax; /* the greatest value of all IOCs; so are the following ones */
    double   fdMax;          /* percent of the limit in use */
    double   callbackMax, onceMax, holdMax, casMax;
    unsigned scans;
    ebpfMonScanRow scan[EBPFMON_HEALTH_SCANS];
    uint64_t lateCount;
    unsigned lateNow;        /* threads that are late, or were in the last ten seconds */
    int      isFarLate;      /* the real period of one of them is more than twice the nominal one */
    char     lateText[EBPFMON_HEALTH_TEXT], lateBrief[EBPFMON_HEALTH_TEXT]; /* the worst of them */
    unsigned gone;           /* IOCs that ended, have not come back, and are not acknowledged */
    char     goneText[EBPFMON_HEALTH_TEXT]; /* the last of them; empty: none */
    unsigned goneRows;       /* those in goneIoc: the last that ended come first */
    ebpfMonGoneIoc goneIoc[EBPFMON_HEALTH_GONE];
    unsigned hangs;          /* threads that hang */
    unsigned still;          /* IOCs that stand still */
    char     stillText[EBPFMON_HEALTH_TEXT]; /* one of them, and why; empty: none */
    unsigned hangLines;      /* lines of text that tell where they hang */
    char     hangLine[EBPFMON_HANG_LINES][EBPFMON_HANG_LINE];
    uint64_t restarts;
    int      isEventTrouble; /* the newest event tells of trouble */
    unsigned events;         /* events in event[]; the newest is at eventHead, older ones stand before it */
    unsigned eventHead;
    char     event[EBPFMON_HEALTH_EVENTS][EBPFMON_HEALTH_LINE];
} ebpfMonHealth;

/* The i-th newest event. NULL: there are not so many. Under the lock of the published values. */
const char *ebpfMonHealthEvent(const ebpfMonHealth *h, unsigned i);
/* Nonzero: somebody has to act, because an IOC is missing or stands still, or a thread hangs. */
int ebpfMonHealthHasTrouble(const ebpfMonHealth *h);

#endif
