/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the IOCs are healthy: what is published of it (a part of the published), and how it follows from what is seen
 * each second. Nothing here reads an IOC.
 */
#ifndef EBPFMON_HEALTH_H
#define EBPFMON_HEALTH_H

#include <stdint.h>
#include <epicsTime.h>

#define EBPFMON_HEALTH_IOCS    256
#define EBPFMON_HEALTH_SCANS   400 /* whose names fit the 16384 bytes of old CA clients */
#define EBPFMON_HEALTH_EVENTS  50
#define EBPFMON_HEALTH_HANGS   64
#define EBPFMON_HANG_LINES     160
#define EBPFMON_HANG_LINE      320
#define EBPFMON_HEALTH_NAME    61
#define EBPFMON_HEALTH_LINE    800
#define EBPFMON_SCAN_SECONDS   10  /* that a scan thread's mean period is taken over */
#define EBPFMON_GONE_SECONDS   600 /* an IOC that ended is missed this long */
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
    /* the longest of the last ten seconds or so, ms */
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
/* Something to be dealt with goes on: an IOC is missing, or a thread hangs. */
int ebpfMonHealthBad(const ebpfMonHealth *h);

/* --- scan threads ---------------------------------------------------------------------------------------------- */

/* What was counted of one so far; ns. */
typedef struct {
    uint64_t passes, sum, max, busy, late;
} ebpfMonScanSample;

typedef struct {
    ebpfMonScanSample at[EBPFMON_SCAN_SECONDS + 1];
    unsigned n, newest;
} ebpfMonScanWindow;

/* Once a second. Fills in period, worst, late and busy; a period in which nothing began and nothing is known of yet
 * stays as it is. "present": how long the period under way takes already (ns), 0: not to be looked at. */
void ebpfMonScanAdd(ebpfMonScanWindow *w, const ebpfMonScanSample *now, uint64_t present, ebpfMonScanRow *row);

/* The period (s) that a choice of menuScan means, as dbScan.c has it (initPeriodic); 0: none. */
double ebpfMonScanPeriod(const char *choice);

/* --- life and death -------------------------------------------------------------------------------------------- */

/* An IOC as it is seen this second. */
typedef struct {
    uint32_t id;      /* never used twice */
    int32_t  pid;
    char     name[EBPFMON_HEALTH_NAME];
    int      gone;    /* it ended a moment ago */
    int      watched; /* what is not is not told of */
    int      fresh;   /* it was started since we look */
    double   uptime;
} ebpfMonLife;

typedef struct {
    uint32_t lastId; /* the highest one that was taken up */
    unsigned n;
    struct {
        ebpfMonLife life;
        epicsTimeStamp goneAt;
        int seen;
    } known[2 * EBPFMON_HEALTH_IOCS];
} ebpfMonLives;

/* Compares with the last time; "h" gets events, gone and restarts. */
void ebpfMonLivesUpdate(ebpfMonLives *lives, const ebpfMonLife *now, unsigned n, const epicsTimeStamp *at,
                        ebpfMonHealth *h);

/* A thread that holds a lock set, or is at one callback, for too long. */
typedef struct {
    uint32_t id, tid;  /* of its IOC, and its own */
    uint64_t begin;    /* ns; with tid its identity */
    double   since;    /* s */
    char     now[EBPFMON_HEALTH_NAME]; /* the record in hand, of those that the chain's root has processed; empty:
                                          not known */
    char     who[240]; /* "IOC x (pid 1): thread scan-1 (tid 2) in record R, at S"; "… in a callback" */
    char     what[480];/* "sleeping in futex (futex_wait_queue), at a < b" */
} ebpfMonHang;

typedef struct {
    unsigned n;
    ebpfMonHang known[EBPFMON_HEALTH_HANGS];
} ebpfMonHangs;

/* The same for threads that hang, after the lives: that a hang is over is not told of an IOC that ended. */
void ebpfMonHangsUpdate(ebpfMonHangs *hangs, const ebpfMonHang *now, unsigned n, const ebpfMonLives *lives,
                        const epicsTimeStamp *at, ebpfMonHealth *h);

/* A thread that holds a lock set, or is at one callback, for this long (s) hangs; a variable of the shell. */
extern double ebpfMonHangLimit;

#endif
