/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The published values: everything that PVs and reports show. The monitor writes them, and readers copy them. Both do
 * so under one lock, which is held only as long as a copy takes. Then the writer notifies the listener which group has
 * changed. This header knows neither BPF nor records.
 *
 * There is one such struct in a process, with a fixed size and one lock, because the records of Base show it: Base has
 * one database in a process, and a record must see the values of one moment.
 *
 * Times are epicsTimeStamp, latencies µs, rates per second, costs percent of one core.
 */
#ifndef EBPFMON_PUBLISHED_H
#define EBPFMON_PUBLISHED_H

#include <epicsTime.h>
#include <stdint.h>
#include "ebpfMonModule.h"
#include "model/filter.h"
#include "model/put.h"

/* --- the IOCs of this host --- */

#define EBPFMON_IOCS_MAX 256
#define EBPFMON_OTHERS_MAX 64

typedef struct {
    uint32_t id;           /* its number; 0: it is gone, or no IOC of EPICS Base */
    char     name[EBPFMON_NAME_SIZE];
    int32_t  pid;
    char     version[40];  /* "7.0.8.1" */
    uint32_t records;
    ebpfMonLevel level;    /* the level at which it is watched now */
    int      severity;     /* it is gone, stands still, hangs, is late, or is not watched as it should be */
    char     note[160];    /* empty; or why it is not watched at the level that the operator asked for, or a
                            * diagnosis */
    double   cost;         /* percent of one core that is taken from it */
    double   timed;        /* percent of the last minutes in which the chains of its scan lists were timed; NaN: its
                            * level is below chains */
    uint64_t procCount;    /* processings of its records that match the filter */
} ebpfMonIocRow;

typedef struct {
    unsigned gone;  /* IOCs that are gone: the first rows, with process 0 */
    unsigned count; /* IOCs: the rows behind them */
    unsigned rows;  /* with the other servers behind them */
    ebpfMonIocRow ioc[EBPFMON_IOCS_MAX];
    double   timed; /* the least of all IOCs; NaN: there is none */
    uint64_t slowUntimed; /* passes of scan lists that may have had a slow chain, which was not timed */
    unsigned shown; /* records of watched IOCs that match the filter's pattern */
} ebpfMonIocValues;

/* Servers of Channel Access and pvAccess in which no records of EPICS Base were found. They have rows behind those of
 * the IOCs, as far as there is room. */
typedef struct {
    unsigned count;
    ebpfMonIocRow ioc[EBPFMON_OTHERS_MAX];
} ebpfMonOtherServerValues;

/* --- processings, chains, asynchronous records, and watched records ---
 *
 * Latencies µs; times of asynchronous records ms; rates per second.
 */

#define EBPFMON_TOP_MAX   100  /* rows of busiest records, of slowest chains … */
#define EBPFMON_HIST_MAX  32   /* octaves of the histogram */
#define EBPFMON_WATCH_MAX 1024 /* watched records, which have PVs of their own */
#define EBPFMON_SLOW_SIZE 16000 /* NELM of CHAIN_LOG (Db/ebpfMonLines.template) */

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* record; RECORD@IOC if two watched IOCs have it */
    uint64_t count;
    double   rate;
    int      atLeast;      /* nonzero: the count is a lower bound */
} ebpfMonProcRow;

typedef struct {
    uint64_t count;
    double   rate;
    unsigned busiestCount;
    ebpfMonProcRow busiest[EBPFMON_TOP_MAX];
} ebpfMonProcValues;

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* root; ROOT@IOC if two watched IOCs have it */
    uint64_t count;
    double   last, mean, p50, p99, max, waitMean, waitMax;
    char     root[EBPFMON_NAME_SIZE], ioc[EBPFMON_NAME_SIZE]; /* the parts of the name */
    double   hist[EBPFMON_HIST_MAX];  /* see ebpfMonChainValues.hist */
} ebpfMonChainRow;

typedef struct {
    unsigned slowestCount;
    ebpfMonChainRow slowest[EBPFMON_TOP_MAX];
    char     selectedRoot[EBPFMON_NAME_SIZE]; /* hist has the chains of this root; empty: of all roots */
    int      selectedFound;
    double   hist[EBPFMON_HIST_MAX];      /* chains from edge i to edge i + 1 */
    double   histEdge[EBPFMON_HIST_MAX];  /* lower edges */
    double   histP50, histP99, histMax;   /* of the same chains; NaN: there are none */
    char     slowText[EBPFMON_SLOW_SIZE]; /* text of chains that were kept whole, the newest first */
    uint64_t slowCount;
} ebpfMonChainValues;

/* Asynchronous processings, from the begin of the chain that began one to the end of the chain that completed it. */
typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* record; RECORD@IOC if two watched IOCs have it */
    uint64_t count;
    double   mean, p99, max; /* ms; 0: none is complete */
    uint64_t timeouts;       /* of these, processings that ended with the alarm status TIMEOUT */
    double   busy;           /* ms since the present one began; 0: there is none */
} ebpfMonAsyncRow;

typedef struct {
    unsigned slowestCount;
    ebpfMonAsyncRow slowest[EBPFMON_TOP_MAX];
    int      selectedFound;
    double   hist[EBPFMON_HIST_MAX]; /* of the record ebpfMonChainValues.selectedRoot, with the same edges */
    double   latencyMax; /* ms; the longest of those that completed in the last 9 to 17 s */
    double   busyMax;    /* ms; the longest of those that are not complete */
} ebpfMonAsyncValues;

typedef struct {
    char     record[EBPFMON_NAME_SIZE]; /* the name that the operator gave; it may be an alias */
    char     real[EBPFMON_NAME_SIZE];   /* the record's own name; empty: not found yet */
    int      found;        /* nonzero: a watched IOC has it */
    int      atLeast;
    uint64_t procCount;
    double   procRate;
    uint64_t chains;
    double   latMean, latP99, latMax; /* NaN: no chain was seen */
    uint64_t asyncCount;
    double   asyncMean, asyncP99, asyncMax; /* ms; NaN: none was seen */
    uint64_t putCount;
    char     putLast[EBPFMON_LINE_SIZE];
    epicsTimeStamp putTime;
    uint64_t putAt;        /* the same in monotonic ns */
} ebpfMonWatchRow;

typedef struct {
    unsigned count;        /* rows in use; it never becomes smaller, and a row keeps its index */
    ebpfMonWatchRow row[EBPFMON_WATCH_MAX];
} ebpfMonWatchValues;

/* --- the heat maps ---
 *
 * A column is a time; the last one is the newest. A row is a record, or an octave of latency; the first row is at
 * the top. NaN: not known, or before the start.
 */

#define EBPFMON_HEAT_COLUMNS 60 /* columns of EBPFMON_HEAT_SECONDS: ten minutes */
#define EBPFMON_HEAT_SECONDS 10.0
#define EBPFMON_HEAT_RECORDS 32
#define EBPFMON_HEAT_OCTAVES EBPFMON_HIST_MAX

typedef struct {
    char     name[EBPFMON_NAME_SIZE];
} ebpfMonHeatRow;

typedef struct {
    unsigned records;      /* rows in use; the other names are empty */
    ebpfMonHeatRow record[EBPFMON_HEAT_RECORDS];
    double   rate[EBPFMON_HEAT_RECORDS * EBPFMON_HEAT_COLUMNS];    /* processings per second */
    double   chains[EBPFMON_HEAT_OCTAVES * EBPFMON_HEAT_COLUMNS];  /* chains that ended; the longest octave first */
} ebpfMonHeatValues;

/* --- searches and beacons --- */
/* Rates per second. */

#define EBPFMON_SEARCH_NAME_SIZE 80 /* bytes of a channel's name, which may have a field and modifiers; a name that
                                     * was cut ends with "..." */

/* A name that clients search for, and nobody answers. */
typedef struct {
    char     name[EBPFMON_SEARCH_NAME_SIZE];
    char     who[192];     /* the last client that searched, its protocol, and about how many clients there are */
    uint64_t count;        /* number of searches */
    epicsTimeStamp first, last;
} ebpfMonSearchRow;

typedef struct {
    char     name[64];     /* address:port and protocol */
    double   rate;         /* searched names */
    uint64_t count;
    unsigned never;        /* names that it searches for and nobody answers; a lower bound */
} ebpfMonSearchClientRow;

typedef struct {
    char     name[64];     /* address:port and protocol */
    uint64_t count, restarts;
    epicsTimeStamp began;  /* when it was first heard, or last restarted */
} ebpfMonBeaconRow;

typedef struct {
    uint64_t count;        /* searched names */
    double   rate;
    uint64_t replaced;     /* names, clients and servers that made room for others, because a table was full */
    unsigned never;        /* names that nobody answers */
    double   neverRate;    /* searches for them a second */
    char     worst[160];   /* the one that is searched most at present, and who searches it; empty: none is */
    unsigned names;        /* names in name[], the most searched first */
    ebpfMonSearchRow name[EBPFMON_TOP_MAX];
    unsigned clients;      /* clients in client[], those with most searches first */
    ebpfMonSearchClientRow client[EBPFMON_TOP_MAX];
    uint64_t beacons;
    double   beaconRate;
    unsigned heard;        /* servers that were heard */
    unsigned servers;      /* servers in server[], the newest or last restarted first */
    ebpfMonBeaconRow server[EBPFMON_TOP_MAX];
} ebpfMonSearches;

/* --- puts, unexpected puts, and the rules that find them --- */

#define EBPFMON_PUTS_MAX       200 /* puts that are kept, of each kind */
#define EBPFMON_UNEXPECTED_MAX 64  /* unexpected puts that are kept */
#define EBPFMON_NO_PUT         "no put yet" /* the text if there was no put */
#define EBPFMON_NO_UNEXPECTED  "no unexpected put yet"

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* an IOC; or address:port of a server that is no watched IOC */
    uint64_t puts, denied; /* puts that passed the filter */
} ebpfMonPutIoc;

/* The kinds of puts. Automatic puts are kept apart: a link that writes ten times a second would displace the puts of
 * people. */
typedef enum {
    ebpfMonPutByClient,
    ebpfMonPutAutomatic, /* see ebpfMonPutIsAutomatic */
    ebpfMonPutKinds
} ebpfMonPutKind;

/* A put stays where it is; its order changes. */
typedef struct {
    unsigned kept;         /* valid entries of order[] */
    uint8_t  order[EBPFMON_PUTS_MAX]; /* indices of put[], the newest one first; behind them those that are free */
    ebpfMonPut put[EBPFMON_PUTS_MAX];
} ebpfMonPutList;

typedef struct {
    uint64_t count;        /* puts that passed the filter */
    uint64_t denied;       /* of these */
    uint64_t automatic;    /* of these */
    double   rate;
    epicsTimeStamp rateTime; /* since then the rate has this value */
    unsigned iocCount;     /* valid entries of ioc[]. An entry stays for ever; the last one counts for all other IOCs */
    ebpfMonPutIoc ioc[EBPFMON_IOCS_MAX];
    ebpfMonPutList of[ebpfMonPutKinds]; /* many puts of one writer to one PV are one row */
    ebpfMonPutList all;    /* of both kinds, each put by itself */
    uint64_t       placed; /* puts that ever were in them */
} ebpfMonPutValues;

/* Places where unexpected puts are shown. An acknowledgement in one place is for the puts that were shown there. */
typedef enum {
    ebpfMonShownByPvs,
    ebpfMonShownByShell,
    ebpfMonShownByCode, /* ebpfMon.h */
    ebpfMonShownCount
} ebpfMonShown;

/* Unexpected puts are numbered from 1 on, whatever the filter says. Those after "acknowledged" are open. The newest
 * ones are kept: number n is at put[(n - 1) % EBPFMON_UNEXPECTED_MAX]. */
typedef struct {
    uint64_t count;
    uint64_t acknowledged;
    uint64_t shown[ebpfMonShownCount]; /* the highest number that was shown there */
    uint64_t restored;     /* so many are of an earlier run of the monitor, and no alarm begins by them */
    int      open;         /* count - acknowledged, at most INT_MAX */
    unsigned kept;         /* valid entries of order[] and put[] */
    uint8_t  order[EBPFMON_UNEXPECTED_MAX]; /* indices of put[], the newest one first */
    ebpfMonPut put[EBPFMON_UNEXPECTED_MAX];
} ebpfMonUnexpectedValues;

typedef struct {
    char     file[256];    /* the file with the rules; empty: none */
    unsigned count;
    int      refused;      /* nonzero: the last file was refused; the rules before it stay */
    char     message[512];
} ebpfMonRuleValues;

/* --- the health of the IOCs --- */

#define EBPFMON_HEALTH_IOCS    256
#define EBPFMON_HEALTH_SCANS   400 /* so many names fit into the 16384 bytes that old CA clients can read */
#define EBPFMON_HEALTH_EVENTS  50
#define EBPFMON_HANG_LINES     160
#define EBPFMON_HANG_LINE      320
#define EBPFMON_HUNG_THREADS   16
#define EBPFMON_HEALTH_NAME    61
#define EBPFMON_HEALTH_LINE    800
#define EBPFMON_HEALTH_TEXT    200
#define EBPFMON_HEALTH_GONE    32
#define EBPFMON_HEALTH_ILLS    64
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
    char     note[100]; /* "gone since 13:41 (signal 11, core dump)": all of it fits into IOC_NOTES */
    epicsTimeStamp time; /* when it was seen to be gone */
    int32_t  pid;       /* 0: not known, because it ended while no monitor watched it */
    int      hasExit;   /* exitCode is known */
    uint32_t exitCode;  /* as in ebpfMonExitEvent */
} ebpfMonGoneIoc;

typedef struct {
    double   value;
    char     cause[2 * EBPFMON_HEALTH_NAME + 2]; /* the IOC; of a lock set also the root record */
} ebpfMonHighest;

/* A periodic scan thread; times in s. */
typedef struct {
    char     ioc[EBPFMON_HEALTH_NAME];
    char     name[40];  /* as in the field SCAN: ".1 second" */
    double   period;    /* mean period of the last ten seconds */
    double   worst;     /* longest period since the IOC is watched */
    uint64_t late;      /* late periods: of more than 1.5 times the nominal one */
    int      severity;  /* it is late now, or was in the last ten seconds: MINOR_ALARM, MAJOR_ALARM */
    double   busy;      /* percent of the period */
    char     topRoot[EBPFMON_HEALTH_NAME]; /* the slowest record: root of the chain that takes the largest part of
                                            * the period */
} ebpfMonScanRow;

/* The health collector (health/healthCollector.h) writes all of it at once. */
typedef struct {
    unsigned iocs;
    ebpfMonIocHealth ioc[EBPFMON_HEALTH_IOCS];
    double   cpuMax, memMax, casMax; /* the greatest value of all IOCs; so are the following ones */
    ebpfMonHighest fdMax;    /* percent of the limit in use */
    ebpfMonHighest callbackMax, onceMax, holdMax;
    unsigned scans;
    ebpfMonScanRow scan[EBPFMON_HEALTH_SCANS];
    uint64_t lateCount;
    unsigned lateNow;        /* threads that are late, or were in the last ten seconds */
    int      isFarLate;      /* the real period of one of them is more than twice the nominal one */
    char     lateText[EBPFMON_HEALTH_TEXT], lateBrief[EBPFMON_HEALTH_TEXT]; /* the worst of them */
    int      areLateStill;   /* all of them are of IOCs that stand still */
    unsigned ended;          /* of them, threads that have ended while their lists have records */
    unsigned standing;       /* of them, those that stand still now … */
    struct { uint32_t iocId, tid; } lateThread[EBPFMON_HUNG_THREADS]; /* … the worst one first */
    unsigned ills;           /* IOCs that are late, hang or stand still … */
    struct { uint32_t iocId; int severity; char text[EBPFMON_HEALTH_TEXT]; } ill[EBPFMON_HEALTH_ILLS]; /* … the worst */
    unsigned gone;           /* IOCs that ended, have not come back, and are not acknowledged */
    char     goneText[EBPFMON_HEALTH_TEXT]; /* the last of them; empty: none */
    unsigned goneRows;       /* those in goneIoc: the last that ended come first */
    ebpfMonGoneIoc goneIoc[EBPFMON_HEALTH_GONE];
    unsigned hangs;          /* threads that hang */
    char     hangText[EBPFMON_HEALTH_TEXT]; /* one of them; empty: none */
    struct { uint32_t iocId, tid; uint64_t begin; } hung[EBPFMON_HUNG_THREADS]; /* the first of them; monotonic ns */
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

/* --- the logs --- */

#define EBPFMON_NO_LOG   "no log: ebpfMonJsonLog and ebpfMonCaPutLog begin one"

typedef enum {
    ebpfMonLogNone,
    ebpfMonLogOk,
    ebpfMonLogTrouble /* the message tells what is wrong, and what to do */
} ebpfMonLogState;

typedef struct {
    char     caPutLogLine[1024]; /* the newest line, in the format of caPutLog */
    ebpfMonLogState state;
    char     message[256];
    uint64_t written;        /* lines that were written */
    uint64_t lost;           /* lines and puts that were lost since the last reset */
    char     lostCause[256]; /* why the last of them were; empty: none */
    double   queue;          /* percent of the queue in use; the maximum of the last second */
} ebpfMonLogValues;

/* --- the state of the monitor itself, what it lost, what it costs, and the packets that it reads --- */

#define EBPFMON_LOSSES_MAX 16
#define EBPFMON_LOSS_SECONDS 60 /* so long after the last loss there is an alarm */

typedef enum {
    ebpfMonStarting,
    ebpfMonRunning,
    ebpfMonDegraded, /* it runs, but cannot do everything: stateMessage tells what */
    ebpfMonFailed
} ebpfMonState;

typedef struct {
    char     reason[40];
    uint64_t count;
} ebpfMonLossRow;

/* Events that the monitor missed, since the last reset. */
typedef struct {
    uint64_t count;      /* sum of all kinds */
    int      isGrowing;  /* it has grown in the last EBPFMON_LOSS_SECONDS */
    char     newest[40]; /* the reason that has grown last; empty: none */
    unsigned kinds;
    ebpfMonLossRow by[EBPFMON_LOSSES_MAX];
} ebpfMonLossValues;

/* Cross-checks that failed since the last reset of the losses. */
typedef struct {
    uint64_t count;
    char     text[256];
} ebpfMonAuditValues;

typedef struct {
    double   iocs;       /* percent of one core that is taken from all watched IOCs together */
    char     most[EBPFMON_NAME_SIZE]; /* the IOC from which most is taken */
    double   trapNs;     /* ns of one trap at the entry of a function, as measured at the start */
    double   cpu;        /* percent of one core that the monitor takes */
    double   memory;     /* MB of the monitor: resident memory, and the tables in the kernel */
} ebpfMonCostValues;

/* All of it in one light: the severity of an alarm. */
typedef enum { ebpfMonHostOk, ebpfMonHostWarning, ebpfMonHostTrouble, ebpfMonHostUnknown } ebpfMonHostLight;

typedef struct {
    ebpfMonHostLight status;
    char     text[256]; /* its causes, the worst first */
} ebpfMonHostValues;

typedef enum { ebpfMonWireOff, ebpfMonWireOn, ebpfMonWireTrouble } ebpfMonWireState;

typedef struct {
    ebpfMonWireState state;
    char     trouble[40]; /* where packets are not read, although they should be; "": nowhere */
    double   rate;       /* packets per second */
    uint64_t lost;       /* packets that the kernel dropped, and gaps */
    char     newest[40]; /* why it has grown in the last EBPFMON_LOSS_SECONDS; empty: it has not */
    uint64_t gaps;
    unsigned circuits;
    uint64_t tlsFailed;  /* connections to IOCs whose handshake of TLS has failed */
} ebpfMonPacketValues;

/* --- all --- */

/* The scan groups: the values of one change together, and its PVs process together. */
typedef enum {
    ebpfMonGroupState,  /* state, losses, costs, packets */
    ebpfMonGroupIocs,
    ebpfMonGroupPuts,       /* all puts: counts, PUT_LOG */
    ebpfMonGroupClientPuts,
    ebpfMonGroupAutoPuts,
    ebpfMonGroupProc,
    ebpfMonGroupChains, /* with the histogram */
    ebpfMonGroupAsync,
    ebpfMonGroupSlow,
    ebpfMonGroupHeat,   /* heat maps, every ten seconds */
    ebpfMonGroupWatch,
    ebpfMonGroupSearch,
    ebpfMonGroupLog,    /* state of the logs */
    ebpfMonGroupUnexpected, /* unexpected puts */
    ebpfMonGroupRules,
    ebpfMonGroupHealth,
    ebpfMonGroupModules, /* each module has one (ebpfMonModule.h) */
    ebpfMonGroupCount = ebpfMonGroupModules + EBPFMON_MODULES_MAX
} ebpfMonGroup;

typedef struct ebpfMonPublished {
    epicsTimeStamp time[ebpfMonGroupCount]; /* for each group: time of the event that changed it */
    uint64_t       timeAt[ebpfMonGroupCount]; /* … in monotonic ns, of those that ebpfMonPublishedSetTime sets */

    ebpfMonState state;
    char     stateMessage[256];
    ebpfMonState ownState;     /* the state of ebpfMonPublishedSetState; "state" is Degraded while a thread is stuck */
    char     ownMessage[256];
    int      isMeasured; /* nonzero: since the start, one second of all IOCs was published, so rates, costs and loads
                          * are known */
    char     remark[160]; /* at the end of the message of a monitor that runs; empty: none */
    char     operators[512];   /* who may write to the control PVs; set once, before records process */
    int      hasNoTables;      /* the PVA server does not run */
    char     stuck[200];       /* names of threads that make no progress; empty: none */
    ebpfMonHostValues       host;
    ebpfMonLossValues       losses;
    ebpfMonAuditValues      audit;
    ebpfMonCostValues       costs;
    ebpfMonPacketValues     packets;
    ebpfMonIocValues        iocs;
    ebpfMonOtherServerValues others;
    ebpfMonPutValues        puts;
    ebpfMonUnexpectedValues unexpected;
    ebpfMonRuleValues       rules;
    ebpfMonProcValues       processings;
    ebpfMonChainValues      chains;
    ebpfMonHeatValues       heat;
    ebpfMonAsyncValues      asyncs;
    ebpfMonWatchValues      watched;
    ebpfMonSearches         searches;
    ebpfMonLogValues        log;
    ebpfMonHealth           health;
    unsigned                restored; /* in restoredIoc: they are not yet in "health" */
    ebpfMonGoneIoc          restoredIoc[EBPFMON_HEALTH_GONE];
    char     hangCause[80];    /* why a thread hangs, for HANG_CNT; empty: not known. The module waits sets it, … */
    char     lateCause[80];    /* … and why a scan thread is late, for SCAN_LATE_NOW */
} ebpfMonPublished;

/* All functions: any thread. */

/* Locks the published values. Never wait for anything before ebpfMonPublishedUnlock(). */

ebpfMonPublished *ebpfMonPublishedLock(void);
void ebpfMonPublishedUnlock(void);

/* Notifies the listener that a group has changed. Not under the lock. */
void ebpfMonPublishedNotify(ebpfMonGroup group);
/* Sets the listener. Any thread that publishes calls "changed", without the lock. NULL: nobody listens. */
void ebpfMonPublishedSetListener(void (*changed)(ebpfMonGroup group));

/* Sets the state and its message, and notifies the listener. If they have changed, and the state is ebpfMonDegraded or
 * worse, the message goes to the error log. */
void ebpfMonPublishedSetState(ebpfMonState state, const char *message);

/* Sets the threads that make no progress. While there are any, the state is at least Degraded, and the message names
 * them. "": there are none. */
void ebpfMonPublishedSetStuck(const char *text);

/* Sets what the message says besides while the state is Running. "": nothing. */
void ebpfMonPublishedSetRemark(const char *text);

/* Keeps a put in the order of time; most puts are the newest one. Under the lock. */
void ebpfMonPublishedKeepPut(ebpfMonPublished *published, const ebpfMonPut *put);
/* Sets the time of a group, but never an earlier time than before, because an archiver would drop the values. "at": the
 * same time in monotonic ns, because the clock may be set back. Under the lock. */
void ebpfMonPublishedSetTime(ebpfMonPublished *published, ebpfMonGroup group, epicsTimeStamp time, uint64_t at);
/* The i-th newest put, from 0; of all kinds; or row of one kind, where many puts of one writer to one PV are one row
 * (run). NULL: there are not so many. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetPut(const ebpfMonPublished *published, unsigned i);
const ebpfMonPut *ebpfMonPublishedGetPutOf(const ebpfMonPublished *published, ebpfMonPutKind kind, unsigned i);

/* Adds a watched record, which has PVs of its own. The same name again gives the same row. Returns its row, or -1: all
 * rows are used, or the name is too long. */
int ebpfMonPublishedAddWatch(const char *record);

/* Selects the root of the histogram; empty: all roots. */
void ebpfMonPublishedSelectRoot(const char *record);

/* An IOC that was gone already when an earlier monitor ended, or that has gone since: it is shown as gone, unless it is
 * there. Call it when all IOCs of the host have been found. At most EBPFMON_HEALTH_GONE. */
void ebpfMonPublishedRestoreGone(const ebpfMonGoneIoc *ioc);

/* Keeps an unexpected put until it is acknowledged. Does nothing with other puts. */
void ebpfMonPublishedAddUnexpected(const ebpfMonPut *put);
/* Keeps one that was open when an earlier monitor ended. Call it before any put comes. */
void ebpfMonPublishedRestoreUnexpected(const ebpfMonPut *put);
/* The i-th newest unexpected put that is open, by the time when it was made. NULL: there are not so many, or it is not
 * kept any more. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetUnexpected(const ebpfMonPublished *published, unsigned i);
/* The newest unexpected put that is open; if none is, the newest one. NULL: there was none. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetNewestUnexpected(const ebpfMonPublished *published);
/* The unexpected put that was published last. NULL: there was none. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetLastUnexpected(const ebpfMonPublished *published);
/* The number of unexpected puts so far, which is also the number of the newest one. */
uint64_t ebpfMonPublishedCountUnexpected(void);
/* Notes that all unexpected puts up to this number were shown in this place. */
void ebpfMonPublishedSetUnexpectedShown(ebpfMonShown where, uint64_t number);
/* Acknowledges the unexpected puts that were shown in this place or by the PVs, and none that came later. Returns how
 * many stay open. */
unsigned ebpfMonPublishedAcknowledge(ebpfMonShown where);

#endif
