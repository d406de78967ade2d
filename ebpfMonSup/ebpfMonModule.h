/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A module in the monitor IOC: it hears what the core sees, and shows values of its own as PVs. A module is a library
 * with a dbd file and a database of its own. An application that wants it links the library and includes the dbd. Its
 * registrar, which Base calls before iocInit, adds it:
 *
 *   static ebpfMonModule sums = { .name = "sums", .put = addPut, .pvs = pvs, .pvCount = NELEMENTS(pvs) };
 *   static void sumsRegistrar(void) { ebpfMonModuleAdd(&sums); }
 *   epicsExportRegistrar(sumsRegistrar);
 *
 * A whole example: tests/module/exampleModule.c. For C and C++. Texts are UTF-8.
 */
#ifndef EBPFMON_MODULE_H
#define EBPFMON_MODULE_H

#include <stddef.h>
#include <stdint.h>
#include <epicsTime.h>
#include <epicsTypes.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EBPFMON_MODULES_MAX 16

/* Identifies a chain on this host: two with the same members are the same chain. */
typedef struct {
    epicsUInt64 begin;     /* monotonic ns at which the thread requested the lock set; 0: none, or it is not known */
    epicsUInt32 thread;    /* id of the thread */
} ebpfMonModuleChain;

/* A put that was published. The texts are valid during the call. */
typedef struct {
    epicsTimeStamp time;
    epicsUInt64 at;        /* the same in monotonic ns: the order of puts, because the clock may be set back */
    const char *ioc;       /* name of the IOC; of a server that is no watched IOC: its address:port */
    const char *pv;        /* RECORD.FIELD; only RECORD for VAL */
    const char *value, *oldValue; /* oldValue: NULL if it is not known */
    const char *user, *host, *peer; /* as the client claims; its real address:port. Empty: there is no client */
    const char *who, *origin; /* user@host and what is certain about it; by which way it came, and why */
    const char *result;    /* "ok", "failed", "denied", "unknown", "sent", "lost", "unwritten" */
    const char *reason;    /* why the rules do not expect it; NULL: they do */
    int isAutomatic;       /* nonzero: an IOC made it by itself */
    int hasFailed;         /* nonzero: as far as is known it wrote nothing */
    ebpfMonModuleChain chain;  /* that began with this put */
    ebpfMonModuleChain source; /* in which a link, perhaps of another IOC, or a driver made the put; or which had led to
                                * that one, through a callback or an asynchronous record */
    const void *context;   /* of the core, for modules of ebpfMon itself: an ebpfMonPut (model/put.h) */
} ebpfMonModulePut;

/* Chains that belong together and were kept whole: at level trace, and the slow ones at level chains. */
typedef struct ebpfMonModuleTrace {
    epicsTimeStamp time;   /* end of the last chain */
    const char *ioc, *root; /* root of the first chain */
    double tookMs;         /* from the begin of the first chain to the end of the last */
    unsigned chains, records;
    int isIncomplete;      /* nonzero: something belongs to it that was not seen */
    const ebpfMonModuleChain *chain; /* its chains, the first of which began it */
    ebpfMonModuleChain source; /* that caused it, through a CA link, a CP link or a callback */
    /* Writes its records as a tree, of several lines, as far as there is room. Returns the length. */
    size_t (*writeTree)(const struct ebpfMonModuleTrace *trace, char *buf, size_t size);
    const void *context;   /* of the core, for writeTree */
} ebpfMonModuleTrace;

/* What a module counts by keys, for a collector of metrics (OTLP): epics.KIND.NAME.events and so on, with a time series
 * for each row. Valid during the call. */
#define EBPFMON_METRIC_KEYS 4
typedef struct {
    const char *key[EBPFMON_METRIC_KEYS];
    double count;          /* of events; only grows, or begins again */
    double sum, min, max, p99; /* of the value; p99 NaN: it is not known */
    const double *bar;     /* how many values came into each bar */
} ebpfMonModuleMetricRow;

typedef struct {
    const char *kind, *name, *title;
    const char *unit;      /* of the value: "ns", "us", "ms", "B", "kB", "MB", "%", or another one */
    const char *keyName[EBPFMON_METRIC_KEYS];
    unsigned keys;
    int hasValue;          /* nonzero: the events have a value */
    unsigned rows;
    const ebpfMonModuleMetricRow *row;
    unsigned bars;         /* of the histogram of each row; 0: it has none */
    const double *barMost; /* the greatest value that comes into each bar; the last bar has no limit */
    int isGauge;           /* nonzero: nothing is counted; each row has one value now, "max": epics.KIND.NAME */
} ebpfMonModuleMetric;

typedef void (*ebpfMonModuleTakeMetric)(void *to, const ebpfMonModuleMetric *metric);

/* A packet that was read: IP with TCP or UDP that may be of Channel Access or pvAccess, of the network namespace of a
 * watched IOC or of our own. Valid during the call. Any host on the network may have forged it. */
typedef struct {
    epicsUInt64 time;      /* ns since 1970 */
    epicsUInt32 netns;     /* inode of the network namespace in which it was seen */
    const epicsUInt8 *ip;  /* from the header of IPv4 or IPv6 on: "length" of its "sent" bytes */
    size_t length, sent;
} ebpfMonModulePacket;

/* What modules of ebpfMon itself get from the core, besides. Their headers are not installed. */
typedef struct {
    struct ebpfMonTargets *targets;      /* watch/target.h */
    const struct ebpfMonCosts *costs;    /* probe/calibrate.h */
    struct ebpfMonPacketServers *packetServers; /* model/packetServers.h */
    struct ebpfMonSearch *search;        /* search/search.h */
    const struct ebpfMonPutRoom *put;    /* put/putRoom.h */
    struct ebpfMonPutLogs *logs;         /* export/log/putLogs.h */
} ebpfMonModuleCore;

/* --- values ---------------------------------------------------------------------------------------------------- */

/* The type of a PV's value in its row. The types from ebpfMonCellText on are text. */
typedef enum {
    ebpfMonCellInt,      /* int, enum */
    ebpfMonCellUnsigned,
    ebpfMonCellCount,    /* uint64_t */
    ebpfMonCellDouble,
    ebpfMonCellText,     /* char[] */
    ebpfMonCellLines,    /* char[], several lines */
    ebpfMonCellLevel,    /* ebpfMonLevel, by name */
    ebpfMonCellTime,     /* epicsTimeStamp */
    ebpfMonCellPutLine,  /* a whole ebpfMonPut */
    ebpfMonCellPutResult /* the result of an ebpfMonPut, in a few words */
} ebpfMonCell;

struct ebpfMonPublished;

/* Returns the row "index"; the newest or largest is the first. NULL after the last one. Called under the lock of the
 * values (ebpfMonModuleLock). A module returns its own rows and does not look at "published". */
typedef const void *(*ebpfMonRowGet)(const struct ebpfMonPublished *published, unsigned index);

/* A PV: its record has DTYP "ebpfMon" and INP "@NAME" (the templates ebpfMonAi.template and so on of ebpfMon's db/). */
typedef struct ebpfMonPv {
    const char   *name;
    int           group;  /* PVs of a group process together. Of a module: ebpfMonModuleAdd sets it */
    ebpfMonRowGet row;
    ebpfMonCell   cell;
    size_t        offset; /* in the row */
    int           always; /* nonzero: the value is also valid while the monitor does not run */
    int           gaps;   /* nonzero: a number that is not known of every row; NaN or less than 0 says that it is not */
    size_t        severity; /* 1 + offset in the row of an int, the least alarm severity of the PV; 0: there is none */
    size_t        cause;  /* 1 + offset in the row of a text, the cause of an alarm (AMSG); 0: there is none */
    int           ofRecord; /* nonzero: of a watched record ("@NAME record"), whose number is the index of "row" */
    size_t        ofIoc;  /* 1 + offset in the row of a text, the IOC of the row: "@NAME ioc" shows it; 0: none */
    int           light;  /* HOST_STATUS is 1 a warning, 2 trouble, while "severity" is above 0; without "severity"
                           * while a count (ebpfMonCellUnsigned) is above 0, a state (ebpfMonCellInt) 2; 0: neither */
} ebpfMonPv;

/* --- the module ------------------------------------------------------------------------------------------------ */

struct ebpfMonPeer;
struct ebpfMonPut;
struct ebpfMonWireEvent;

/* Functions may be NULL. None of put, trace, packet, message, event, iocs and second, nor of those for modules of
 * ebpfMon itself, may wait for anything: the core's threads call them. */
typedef struct {
    const char *name;      /* for reports and messages */
    void *arg;             /* the first argument of each function */
    ebpfMonPv *pvs;        /* its PVs; they stay the module's */
    unsigned pvCount;
    /* The monitor starts: the kernel part is loaded, no event has come yet. 0; or -1 with a message to the error log:
     * the monitor runs without this module. */
    int  (*start)(void *arg, const ebpfMonModuleCore *core);
    /* The monitor ends. Waits at most "seconds" for threads of the module. 0; or -1: one of them still runs. */
    int  (*stop)(void *arg, double seconds);
    /* A put was published; it has passed the filter. Event or packet thread, without a lock. */
    void (*put)(void *arg, const ebpfMonModulePut *put);
    /* A trace is complete. Event thread, under locks of the core: copy what is needed, and call no function of
     * ebpfMon. */
    void (*trace)(void *arg, const ebpfMonModuleTrace *trace);
    /* A packet was read. Packet thread, without a lock: what it takes here, each packet pays. Only if it is set before
     * the monitor starts. */
    void (*packet)(void *arg, const ebpfMonModulePacket *packet);
    /* A message was read (wire/wireEvent.h), before "packet" is told of the packet in which it ends. NULL: those that
     * were told since the last packet end in none. Only of a module of ebpfMon itself. */
    void (*message)(void *arg, const struct ebpfMonWireEvent *message);
    /* These three only of a module of ebpfMon itself. A put is finished: also one that the filter hides (model/put.h).
     * Event or packet thread. */
    void (*finished)(void *arg, const struct ebpfMonPut *put);
    /* The servers of this host were looked for again (put/servers.h); "haveChanged": since IOCs came or went. Packet
     * thread. */
    void (*servers)(void *arg, int haveChanged);
    /* Finds the name of a channel of pvAccess on a connection that is older than the monitor. 0, or -1: it is not
     * known. Packet thread. */
    int  (*findChannel)(void *arg, const struct ebpfMonPeer *peer, unsigned sid, char *name, size_t size);
    /* An IOC started, ended or restarted, a thread hangs or goes on: a line of IOC_EVENTS. Publishing thread. */
    void (*event)(void *arg, const epicsTimeStamp *time, const char *text);
    /* IOCs started or ended, have other records, or are watched in another way; or servers that are no IOCs of EPICS
     * Base came or went. A thread of the core, perhaps under its locks: wake a thread of your own. */
    void (*iocs)(void *arg);
    /* Each second, less often in a silence. Publishing thread, without a lock. */
    void (*second)(void *arg);
    /* Gives what is to be sent as metrics to "take", one after the other. The thread that sends them, without a lock;
     * also before the start. "take" waits for nothing. */
    void (*metrics)(void *arg, ebpfMonModuleTakeMetric take, void *to);
    /* The counts of what was lost begin again (LOST_RESET). Any thread. */
    void (*resetLost)(void *arg);
    /* Prints what the module does, to stdout (ebpfMonReport, dbior). Any thread. */
    void (*report)(void *arg, int level);
    const struct ebpfMonSpanSink *spans; /* where the spans of traces go; only of a module of ebpfMon itself
                                          * (trace/traceSpans.h) */
    int  group;            /* ebpfMonModuleAdd sets this … */
    int  isStarted;        /* … and the core this one */
} ebpfMonModule;

/* Adds a module, which must never be freed. Call it from a registrar. 0; or -1, and a message says why: there are
 * EBPFMON_MODULES_MAX, or a PV of this name exists. */
int ebpfMonModuleAdd(ebpfMonModule *module);

/* The lock of all published values. Hold it while rows change, and wait for nothing. Any thread. */
void ebpfMonModuleLock(void);
void ebpfMonModuleUnlock(void);

/* The name of the watched record with this number, perhaps an alias; it stays. NULL: there are not so many. Any thread,
 * without the lock. */
const char *ebpfMonModuleGetWatched(unsigned index);

/* The values of this module changed now: its PVs process. Any thread, without the lock. */
void ebpfMonModuleShow(const ebpfMonModule *module);
/* The same for a module whose thread makes all "values" at once, "size" bytes: if they differ from those that the PVs
 * show, copies them there under the lock. Only one thread writes to "shown". */
void ebpfMonModuleShowValues(const ebpfMonModule *module, void *shown, const void *values, size_t size);

/* Adds a line to IOC_EVENTS, within a second; in a silence within ten. It is cut to EBPFMON_MODULE_EVENT characters.
 * Of more than 16 lines at once the last ones are left out. Any thread. */
#define EBPFMON_MODULE_EVENT 400
void ebpfMonModuleAddEvent(const char *text);

#ifdef __cplusplus
}
#endif

#endif
