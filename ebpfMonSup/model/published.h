/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The published: what is published, in one place of fixed size. The monitor writes it, records and reports
 * read it, both under its lock and for no longer than a copy takes; a writer then tells the listener
 * which group changed. Knows neither BPF nor records.
 *
 * Times are epicsTimeStamp, latencies µs, rates per second, costs percent of one core.
 */
#ifndef EBPFMON_PUBLISHED_H
#define EBPFMON_PUBLISHED_H

#include <stdint.h>
#include <epicsTime.h>
#include "model/health.h"
#include "model/level.h"
#include "model/put.h"

#define EBPFMON_IOCS_MAX   256
#define EBPFMON_PUTS_MAX   200  /* recent puts kept */
#define EBPFMON_TOP_MAX    100  /* busiest records, slowest chains */
#define EBPFMON_HIST_MAX   32   /* octaves of CHAIN_HIST */
#define EBPFMON_LOSTS_MAX  16
#define EBPFMON_WATCH_MAX  1024 /* records with scalars of their own */
#define EBPFMON_SLOW_SIZE  16384
#define EBPFMON_LOG_SIZE   16384
#define EBPFMON_NO_PUT     "no put yet" /* in place of the newest put */
#define EBPFMON_NO_LOG     "no log: ebpfMonJsonLog and ebpfMonCaPutLog begin one"
#define EBPFMON_NO_OTLP     "nothing is sent: ebpfMonOtlp or OTEL_EXPORTER_OTLP_ENDPOINT begins it"
#define EBPFMON_BAD_MAX    64   /* unexpected puts kept */
#define EBPFMON_NO_BAD     "no unexpected put yet"

/* What changes together, and is scanned together. */
typedef enum {
    ebpfMonGroupState,  /* state, lost, cost, cpu, mem */
    ebpfMonGroupIocs,
    ebpfMonGroupPuts,
    ebpfMonGroupProc,
    ebpfMonGroupChains, /* and the histogram */
    ebpfMonGroupSlow,
    ebpfMonGroupWatch,
    ebpfMonGroupSearch,
    ebpfMonGroupLog,    /* state of the logs */
    ebpfMonGroupOtlp,   /* state of OTLP */
    ebpfMonGroupBad,    /* unexpected puts */
    ebpfMonGroupRules,
    ebpfMonGroupHealth,
    ebpfMonGroupCount
} ebpfMonGroup;

/* Where unexpected puts are shown: who acknowledges there can mean those only that were. */
typedef enum {
    ebpfMonShownByPvs,
    ebpfMonShownByShell,
    ebpfMonShownByCode, /* ebpfMon.h */
    ebpfMonShownCount
} ebpfMonShown;

typedef enum {
    ebpfMonStarting,
    ebpfMonRunning,
    ebpfMonDegraded, /* runs, but something asked for cannot be had: stateMsg */
    ebpfMonFailed
} ebpfMonState;

typedef enum {
    ebpfMonLogNone,
    ebpfMonLogOk,
    ebpfMonLogTrouble /* logMsg says what, and what to do */
} ebpfMonLogState;

typedef struct {
    char     name[EBPFMON_NAME_SIZE];
    int32_t  pid;
    char     version[40];  /* "7.0.8.1" */
    uint32_t records;
    ebpfMonLevel level;    /* in force */
    char     note[160];    /* empty, or why the level is not the one asked for, or a diagnosis */
    double   cost;         /* percent of one core taken from it */
    uint64_t procCount;    /* processings of its records that match the filter */
} ebpfMonIocRow;

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* an IOC, or the address:port of a server that is no watched one */
    uint64_t puts, denied; /* that passed the filter */
} ebpfMonPutIoc;

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* record; RECORD@IOC where two watched IOCs have it */
    uint64_t count;
    double   rate;
    int      atLeast;      /* the count is a lower bound */
} ebpfMonProcRow;

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* root record */
    uint64_t count;
    double   last, mean, p50, p99, max, waitMean, waitMax; /* µs */
    char     root[EBPFMON_NAME_SIZE], ioc[EBPFMON_NAME_SIZE]; /* what the name is made of */
    double   hist[EBPFMON_HIST_MAX];  /* as hist below */
} ebpfMonChainRow;

typedef struct {
    char     record[EBPFMON_NAME_SIZE]; /* the name asked for, an alias too */
    char     real[EBPFMON_NAME_SIZE];   /* the record's own name, once it was found */
    int      found;        /* some watched IOC has it */
    int      atLeast;
    uint64_t procCount;
    double   procRate;
    uint64_t chains;
    double   latMean, latP99, latMax; /* µs; NaN while no chain was seen */
    uint64_t putCount;
    char     putLast[EBPFMON_LINE_SIZE];
    epicsTimeStamp putTime;
} ebpfMonWatchRow;

#define EBPFMON_SEARCH_NAME_SIZE 80 /* a channel name may carry a field and modifiers; what is cut ends in "..." */

/* A name that clients ask for and nobody answers. */
typedef struct {
    char     name[EBPFMON_SEARCH_NAME_SIZE];
    char     who[64];      /* the last client that asked, its protocol, and about how many there are */
    uint64_t count;        /* questions */
    epicsTimeStamp first, last;
} ebpfMonSearchRow;

typedef struct {
    char     name[40];     /* address:port and protocol */
    double   rate;         /* names asked for */
    uint64_t count;
    unsigned never;        /* of the names that nobody answers, those it asks for; a lower bound */
} ebpfMonSearchClientRow;

typedef struct {
    char     name[40];     /* address:port and protocol */
    uint64_t count, restarts;
    epicsTimeStamp began;  /* first heard of, or its last restart */
} ebpfMonBeaconRow;

/* What was heard of searches and beacons. */
typedef struct {
    uint64_t count;        /* names asked for */
    double   rate;
    uint64_t replaced;     /* names, clients and servers that were given up for others: a table was full */
    unsigned never;        /* names that nobody answers */
    unsigned names;        /* … of them in name[], most asked first */
    ebpfMonSearchRow name[EBPFMON_TOP_MAX];
    unsigned clients;      /* loudest first */
    ebpfMonSearchClientRow client[EBPFMON_TOP_MAX];
    uint64_t beacons;
    double   beaconRate;
    unsigned heard;        /* servers */
    unsigned servers;      /* … of them in server[], newest or last restarted first */
    ebpfMonBeaconRow server[EBPFMON_TOP_MAX];
} ebpfMonSearches;

typedef enum { ebpfMonWireOff, ebpfMonWireOn, ebpfMonWireTrouble } ebpfMonWireState;

typedef struct {
    epicsTimeStamp time[ebpfMonGroupCount]; /* of the event that changed the group */

    ebpfMonState state;
    char     stateMsg[256];

    unsigned iocCount;
    ebpfMonIocRow ioc[EBPFMON_IOCS_MAX];
    unsigned filterMatching; /* records of watched IOCs that match the filter's pattern */

    uint64_t putCount;     /* that passed the filter */
    uint64_t putDenied;
    unsigned putIocs;      /* valid entries of putIoc[]: they are never given up, the last one is of all others */
    ebpfMonPutIoc putIoc[EBPFMON_IOCS_MAX];
    double   putRate;
    unsigned putRecent;    /* valid entries of put[] */
    unsigned putHead;      /* index of the newest; the one before it is at (putHead + PUTS_MAX - 1) % PUTS_MAX */
    ebpfMonPut put[EBPFMON_PUTS_MAX];

    uint64_t procCount;
    double   procRate;
    unsigned procTop;
    ebpfMonProcRow proc[EBPFMON_TOP_MAX];

    unsigned chainTop;
    ebpfMonChainRow chain[EBPFMON_TOP_MAX];

    char     histSel[EBPFMON_NAME_SIZE]; /* root record asked for; empty: all chains of all roots */
    int      histFound;
    double   hist[EBPFMON_HIST_MAX];      /* chains between edge i and edge i+1 */
    double   histEdge[EBPFMON_HIST_MAX];  /* µs, lower edges */

    char     slow[EBPFMON_SLOW_SIZE];     /* newest slow chains as text, newest first */
    uint64_t slowCount;

    uint64_t lostCount;      /* since the last reset */
    unsigned lostKinds;
    struct { char reason[40]; uint64_t count; } lost[EBPFMON_LOSTS_MAX];

    double   cost;           /* of all targets together */
    double   hitCost;        /* ns, calibrated: one entry trap */
    double   cpu;            /* the monitor's own, percent of one core */
    double   mem;            /* the monitor's own, MB resident and BPF maps */

    char     putCaPutLog[1024]; /* newest line in caPutLog's format */
    ebpfMonLogState logState;
    char     logMsg[256];
    uint64_t logCount;       /* lines written */
    uint64_t logLost;        /* lines and puts, since the last reset */
    double   logQueue;       /* percent in use, the most in the last second */
    ebpfMonLogState otlpState;
    char     otlpMsg[256];
    uint64_t otlpSent;       /* log records, data points and spans that were accepted */
    uint64_t otlpLost;       /* since the last reset */
    double   otlpRate;       /* of otlpSent */
    double   otlpQueue;      /* as logQueue */

    unsigned watchCount;
    ebpfMonWatchRow watch[EBPFMON_WATCH_MAX];

    ebpfMonSearches searches;

    ebpfMonWireState wireState;
    double   wireRate;       /* packets */
    uint64_t wireLost;       /* packets that the kernel dropped, and gaps */
    uint64_t wireGaps;
    unsigned wireCircuits;
    /* Unexpected puts are numbered from 1 on, whatever the filter says; those above badAcked are open. The newest ones
     * are kept, number n at bad[(n - 1) % EBPFMON_BAD_MAX]. */
    uint64_t badCount;
    uint64_t badAcked;
    uint64_t badShown[ebpfMonShownCount]; /* the highest number that was shown there */
    int      badOpen;        /* badCount - badAcked, as far as an int has it */
    ebpfMonPut bad[EBPFMON_BAD_MAX];

    char     rulesFile[256]; /* in force; empty: none */
    unsigned rulesCount;
    int      rulesRefused;   /* the last load was; the rules before it are in force */
    char     rulesMsg[512];

    ebpfMonHealth health;
} ebpfMonPublished;

/* The one published, locked. Never wait for anything while you hold it. */
ebpfMonPublished *ebpfMonPublishedLock(void);
void ebpfMonPublishedUnlock(void);

/* The newest put is published->put[putHead]; i = 0 … putRecent-1, newest first. */
const ebpfMonPut *ebpfMonPublishedGetPut(const ebpfMonPublished *published, unsigned i);

/* Tells the listener, from any thread, not under the lock. */
void ebpfMonPublishedNotify(ebpfMonGroup group);
void ebpfMonPublishedSetListener(void (*changed)(ebpfMonGroup group));

/* Asks for scalars of one record; the same name twice gives the same row. Row index, or -1 when full. */
int ebpfMonPublishedAddWatch(const char *record);

/* Chooses the root record of the histogram; empty: all. */
void ebpfMonPublishedSelectHist(const char *record);

/* Keeps a put that is unexpected until it is acknowledged; does nothing with others. */
void ebpfMonPublishedAddBad(const ebpfMonPut *put);
/* The i-th newest one that is open; NULL: there are not so many, or it is not kept any more. */
const ebpfMonPut *ebpfMonPublishedGetBad(const ebpfMonPublished *published, unsigned i);
/* Number of the newest; and: all up to this number have been shown. */
uint64_t ebpfMonPublishedGetBadNumber(void);
void ebpfMonPublishedSetBadShown(ebpfMonShown where, uint64_t number);
/* Acknowledges those that were shown there or by the PVs, none that came later. How many stay open. */
unsigned ebpfMonPublishedAckBad(ebpfMonShown where);

#endif
