/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One watched IOC, from the moment it is found until it is forgotten, and the list of all of them. The follower alone
 * adds, changes and removes targets; each member of ebpfMonTarget says which threads may use it.
 */
#ifndef EBPFMON_TARGET_H
#define EBPFMON_TARGET_H

#include <stdint.h>
#include <sys/types.h>
#include <stddef.h>

#include "code/image.h"
#include "ebpfMonModule.h"
#include "ebpfMonTable.h"
#include "host/lateReads.h"
#include "host/procInfo.h"
#include "ioc/catalogue.h"
#include "ioc/closure.h"
#include "model/filter.h"
#include "probe/attach.h"
#include "probe/calibrate.h"
#include "watch/budget.h"
#include "watch/turns.h"

/* --- functions without symbols ---
 *
 * Tries functions of a program that has no symbols of its own: they were recognised by their code, or their addresses
 * are in a file of symbols, which its maker may have made wrongly. The kernel part counts the traps at dbScanUnlock
 * whose argument is no record of the catalogue, and the records that were seen to process. This module knows no IOC and
 * no clock. No lock: only the follower uses it. */

typedef enum {
    ebpfMonFunctionsOpen,  /* not yet known */
    ebpfMonFunctionsRight, /* a record was seen to process */
    ebpfMonFunctionsWrong  /* what seems to be dbScanUnlock is another function */
} ebpfMonFunctionsVerdict;

typedef struct {
    ebpfMonFunctionsVerdict verdict; /* once it is not open, it stays */
    uint64_t strange;                /* traps so far whose argument is no record */
} ebpfMonFunctionTrial;

/* "strange": such traps since the last look; "counted": processings that were counted so far. Nonzero: the verdict
 * changed. */
int ebpfMonFunctionTrialLook(ebpfMonFunctionTrial *trial, uint64_t strange, uint64_t counted);

/* --- IOCs --- */

/* How a record's count is known. */
#define EBPFMON_BY_TRAP   1 /* counted by the trap: a snapshot cannot count it rightly */
#define EBPFMON_AT_LEAST  2 /* … but the trap is not attached: its count is a lower bound */
#define EBPFMON_SHOWN     4 /* matches the filter's record pattern */
#define EBPFMON_MISSED    8 /* it may have processed without being counted, when the way to count it changed: its count
                             * is a lower bound for good */
#define EBPFMON_TWICE    16 /* a chain can process it twice */
#define EBPFMON_MAY_SLEEP 32 /* its device support is the only reason for the trap (watch/typeTrial.h): while that
                              * sleeps, its count stands still without the trap */
#define EBPFMON_TRAP_ALONE 64 /* its time stamp may move without a processing: a snapshot counts too much, and without
                               * the trap its count stands still */

/* What a put may have processed, or makes process, without being counted; 0: nothing. */
#define EBPFMON_UNSEEN_ALONE   1 /* this record */
#define EBPFMON_UNSEEN_REACHED 2 /* and all that it reaches by links */

#define EBPFMON_NOTE_SIZE 160
#define EBPFMON_ODD_SERVER 5 /* oddServer from which on nothing of its CA server is believed */
#define EBPFMON_NOTE_SILENT "its memory does not answer: set aside until it does"

typedef struct ebpfMonTarget {
    /* Fixed since it was added: any thread, while it holds the lock under which it found this target. */
    pid_t     pid;
    uint64_t  start;       /* with the pid its identity */
    uint32_t  iocId;       /* never used twice */
    uid_t     uid;         /* whose process it is */
    uid_t     user;        /* who pays for it: host/procRead.h */
    char      name[EBPFMON_IOCNAME_SIZE];

    /* Shared: the event thread writes these under the lock. */
    uint32_t  exitCode;    /* as in ebpfMonExitEvent, if hasExit */
    int       hasExit;     /* nonzero: the kernel part saw its end … */
    uint64_t  exitAt;      /* … at this time (monotonic ns) */

    /* Shared: the follower writes these under the lock, and other threads read them under the lock. The follower reads
     * them without the lock, because no other thread writes them. */
    struct ebpfMonTarget *next;
    ebpfMonImage image;    /* it changes once: when symbols of a nameless program are found */
    char      version[40];
    char      note[EBPFMON_NOTE_SIZE]; /* what is wrong, or why the level is not the one asked for; set by
                                        * ebpfMonTargetSetNote alone */
    int       remark;      /* the note is no trouble */
    int       running;     /* iocInit is done: links are resolved, closures made */
    int       gone;        /* ended; kept a while so that its last events still get their names */
    int       listens;     /* it has a socket that listens for TCP clients; looked at while its database is not read */
    ebpfMonCatalogue *cat; /* NULL: no database yet, or one that cannot be believed. Its links change under this lock */
    ebpfMonLevel wantedLevel; /* by the filter or by a command */
    ebpfMonLevel level;    /* in force */
    uint32_t  probesOn;    /* EBPFMON_BIT of each probe that is attached; set by ebpfMonTargetSetProbes */
    uint64_t  resultsUntil; /* monotonic ns: when the return probe of dbPut was taken off; 0: never. Events of before
                             * may still be in the ring */
    uint64_t  queuesSince; /* as follower.queuesSince, for the publisher of asynchronous records */
    uint64_t  putsSince;   /* monotonic ns: each put that is made from then on is seen inside, because all its probes
                            * are attached; UINT64_MAX: they are not, or begin to go. It stays when the IOC ends */
    double    cost;        /* percent of one core that watching took, over the last seconds; without modules */
    double    costLimit;   /* percent; 0: none, or not known yet */
    double    traps, cold; /* as in ebpfMonCostSpent, when its cost was looked at last */
    ebpfMonAttachWay way;  /* how the ends of its chains are seen */
    int       sweeps;      /* the ends of passes are seen instead of those of chains; at level chains: both, in turns */
    uint32_t  turn;        /* ebpfMonTargetConf.turn while the chains of its scan lists are timed; 0: they are not */
    double    timed;       /* percent of the last minutes in which the chains of its scan lists were timed; NAN: at its
                            * level no chain is timed */
    uint64_t  slowUntimed; /* passes that may have had a slow chain, which was not timed */
    /* its records in the kernel part's tables; the arrays are by index of the catalogue */
    uint32_t  slot;        /* of the first record, UINT32_MAX: none has one */
    uint64_t  slotAt;      /* monotonic ns: it has these slots since then; older events may have slots of another IOC */
    volatile struct ebpfMonRecState *recState; /* of the first record, in the mapped table; NULL: none has a slot */
    int       indexed;     /* the kernel part finds them by address */
    uint32_t  closureAt, closureCount; /* its part of the closure table, UINT32_MAX: none */
    uint32_t  oldClosureAt, oldClosureCount; /* its part before; free at the next change */
    ebpfMonStretches *stretch[2]; /* by bank of the kernel part's pass counters; NULL: none */
    uint64_t  passesMoved; /* processings that were counted in banks which were emptied since: they are in "adjust" */
    uint8_t  *how;         /* EBPFMON_BY_TRAP … */
    int64_t  *adjust;      /* added to the kernel part's counter when the way of counting changed */
    uint32_t  shown;       /* records that match the filter */
    uint8_t  *unseen;      /* EBPFMON_UNSEEN_…: the event thread sets it, the follower takes it; both under the lock,
                            * as the next */
    int       hasUnseen;

    /* What each module takes (ebpfMonTargetSetShare). A thread of the module writes it under the lock, and other
     * threads read "cost" under the lock. */
    struct {
        double cost;      /* percent of one core, at its last look */
        double overSince; /* monotonic s: since then it must save; 0: it need not */
    } share[EBPFMON_MODULES_MAX];

    /* The packet thread writes these under the lock, and other threads read "cost" under the lock (packetReader.h). */
    struct {
        uint64_t ns;      /* since the last tick */
        double   cost;    /* percent of one core that its packets took */
    } packets;

    int owesLinks;     /* its links have changed, and are read when its user has CPU time left. The follower writes it
                        * under the lock */

    /* The event thread's own. */
    struct {
        unsigned lateChains; /* in a row, of which all stamps were older than the chain */
        ebpfMonLateReads *reads; /* ebpfMonTargetsGetReads; NULL in tests: reads at once */
    } eventThread;

    /* The publisher's own; the arrays, by index of the catalogue, are made and freed by the follower under the lock. */
    struct {
        uint64_t *counts;    /* at the last publication */
        float    *rate;
        uint64_t slowUntimed; /* at the last publication */
        uint64_t procCount;  /* of those that are shown, since it was found */
    } publisher;

    /* The follower's own: no lock. */
    struct {
        ebpfMonMem *mem;
        ebpfMonAttached att;
        long      nodes;       /* record nodes when the catalogue was read */
        uint64_t  foundAt;     /* monotonic ns, as all times here */
        uint64_t  endedAt;
        int       isOver;      /* then, its process ended; 0: it began to run another program */
        uint64_t  lookAt;      /* next look whether iocInit is done, while it starts */
        uint64_t  readAt;      /* not before, its database is read or looked through again */
        uint64_t  listensAt;   /* not before, its sockets are looked at again */
        uint64_t  turnAt;      /* its next look, if its user has cost too much (follower.c) */
        int       isShort;     /* too little memory is left for its records, or for those that were loaded later */
        int       wasThere;    /* it was found when the monitor looked around for the first time */
        int       hasNoShare;  /* other IOCs gave up their places in the tables for it, and it could not use them */
        int       silent;      /* its memory does not answer */
        int       noFiles;     /* no files are left for its probes */
        int       nameDenied;  /* its environment may not be read: it may have another name */
        int       initDone;    /* iocInit was seen done */
        int       levelApplied; /* since the filter changed */
        int       isPrepared;  /* links, code and locks were read, and records have slots: levels above off can begin */
        uint64_t  callersAt;   /* when the files that call dbScanLock were looked for */
        uint64_t  callersPages; /* … and how much it had mapped then; 0: they are looked for once more */
        unsigned  callersMissed; /* such looks in a row that failed */
        uint32_t  oddLinks;    /* links that lie in memory as in no known release of Base */
        uint64_t  oddAt;       /* not before, they and oddLocks are looked at again */
        unsigned  oddServer;   /* looks in a row at which its CA server lay in memory as in no known release */
        const char *oddMember; /* … and the member of a struct that showed this at the last look */
        int       isServerKnown; /* it lies as expected */
        int       oddLocks;    /* so do its lock sets */
        int       isPutLockSeen; /* ebpfMonTargetConf.isPutLockSeen */
        uint16_t  serving, servings; /* ebpfMonTargetConf.serving, and its last number */
        int       hasArrays;   /* the kernel part knows its array fields */
        int       hasLists;    /* its scan lists are where the kernel part looks for them */
        int       counted;     /* its processings were, before this, since it got its slots */
        int       reference;   /* dbProcess is trapped too, to compare */
        int       hadBreakpoints; /* since it was found */
        int       clockWentBack; /* the clock of the host did, and its records are not marked yet */
        uint64_t  clockSetSince; /* … it was set back a little after this (ns since 1970); 0: it was not */
        uint64_t  clockSetAt;  /* when that was noticed */
        int       clockAhead;  /* it was seen to be ahead of that of the host, and its records are marked */
        uint32_t  clockNext;   /* record at which the next look at its clock begins */
        void     *arrays;      /* the block of all arrays by record that a slot brings along */
        uint64_t *resumed;     /* by record: its stamp before the probes were attached again; NULL: no interruption */
        int       busyAtBegin; /* one of its records was processing asynchronously when counting began */
        ebpfMonFunctionTrial functions; /* used if image.core has no symbols of its own */
        struct ebpfMonTypeTrial *trial; /* of the record types that are not Base's; NULL: none */
        uint32_t  trapped;     /* records that want the trap */
        uint64_t  queuesSince; /* callbacks and scanOnce have been watched from then on */
        int       bank;        /* of the pass counters, that the closures in force use */
        struct {
            uint32_t number;   /* nonzero: passes are watched, not chains (sweeps.h); another number each time */
            int      ends;     /* chains are watched, too: until the last pass is over that was not seen by them */
            int      lost;     /* its links or lists do not allow it any more */
            int      broken;   /* its probes cannot be attached */
            int      isScanPutSeen; /* ebpfMonTargetConf.isScanPutSeen */
            int      serial;   /* no scan list is scanned by two threads at a time */
            uint64_t since;    /* when they began to be watched (monotonic ns) */
            uint64_t puts;     /* ebpfMonPassNotes.putsBegun when its lists were read */
            uint64_t missed, unsure; /* of ebpfMonPassNotes at the last look … */
            uint64_t slow, slowBefore, slowItself; /* … and these; "slow" goes on when passes begin anew */
            uint64_t tryAt;    /* not before, it is tried … */
            uint64_t pause;    /* … again after this, if it does not fit */
            uint64_t endsAt;   /* since then it ends */
            struct ebpfMonSweepPlan *plan;
        } sweep;
        struct {
            int      all;      /* a command or the filter wants all chains of this IOC timed */
            int      inTurns;  /* at its level, chains of scan lists are to be timed in turns, if passes can be
                                * watched */
            uint32_t number;   /* ebpfMonTargetConf.turn */
            int      untimed;  /* ebpfMonTargetConf.untimed */
            int      parallel; /* ebpfMonTargetConf.parallel */
            ebpfMonTurns turns;
            double   timedBefore; /* ebpfMonTurnsTimed at the last sample of the cost; below 0: they have begun since */
        } timing;
        ebpfMonBudget budget;
        struct ebpfMonHits hits; /* at the last look at its cost */
        uint64_t  hitsAt;      /* 0: never */
        uint64_t  cpuBefore;   /* CPU time of its process then, ns */
    } follower;
} ebpfMonTarget;

/* The IOCs that are watched or could be. */
typedef struct ebpfMonTargets ebpfMonTargets;

ebpfMonTargets *ebpfMonTargetsNew(void); /* NULL without memory */
void ebpfMonTargetsFree(ebpfMonTargets *targets); /* must be empty; NULL does no harm */

/* Held for a short time: while a thread holds it, it reads no file, no name service, and no memory of an IOC. */
void ebpfMonTargetsLock(ebpfMonTargets *targets);
void ebpfMonTargetsUnlock(ebpfMonTargets *targets);

/* What the event thread reads from the memory of IOCs for its work under the lock. The event thread's own. */
ebpfMonLateReads *ebpfMonTargetsGetReads(ebpfMonTargets *targets);

/* Under the lock; the follower needs none. */
ebpfMonTarget *ebpfMonTargetsGetFirst(ebpfMonTargets *targets);
ebpfMonTarget *ebpfMonTargetsFindById(ebpfMonTargets *targets, uint32_t iocId);
ebpfMonTarget *ebpfMonTargetsFindByPid(ebpfMonTargets *targets, pid_t pid); /* not one that is gone */

/* Notes how a process ended. Takes the lock. */
void ebpfMonTargetsNoteExit(ebpfMonTargets *targets, const struct ebpfMonExitEvent *ev);

/* Notes that a target came or went, or that its probes changed. Any thread, no lock. */
void ebpfMonTargetsNoteChange(ebpfMonTargets *targets);
/* "changed" is called by the thread that notes a change; it must not wait. Set it before other threads use the
 * targets. */
void ebpfMonTargetsSetListener(ebpfMonTargets *targets, void (*changed)(void *arg), void *arg);
size_t ebpfMonTargetsCountChanges(ebpfMonTargets *targets);

/* The follower has looked at all processes that were on the host at this time (monotonic ns). Get: 0: not yet. Any
 * thread, no lock. */
void ebpfMonTargetsSetSearched(ebpfMonTargets *targets, uint64_t at);
uint64_t ebpfMonTargetsGetSearched(ebpfMonTargets *targets);
/* Nonzero: it has done that once, and each IOC that was found is followed, has ended, or is to be left at level off.
 * Any thread, without the lock. */
int ebpfMonTargetsAreFollowed(ebpfMonTargets *targets);

/* "probesOn" is to be this. Only the follower calls it, under the lock. */
void ebpfMonTargetSetProbes(ebpfMonTarget *t, uint32_t on);

/* Its putsSince. "iocId": of the IOC; if it is 0, it is set if the process "pid" is an IOC by now (0: no such process).
 * 0 or -1: there is no such IOC (any more). It takes the lock. */
int ebpfMonTargetsGetPutsSince(ebpfMonTargets *targets, uint32_t *iocId, pid_t pid, uint64_t *since);

/* What the IOC pays and its budget limits, percent of one core: for being watched, and for modules. Under the lock, as
 * the next ones. */
double ebpfMonTargetGetCost(const ebpfMonTarget *t);

/* Nonzero: it pays all that FILTER_BUDGET allows, so nothing more may begin in it. */
int ebpfMonTargetIsSpent(const ebpfMonTarget *t);

/* The module took so much from the IOC at its last look, percent of one core. */
void ebpfMonTargetSetShare(ebpfMonTarget *t, const ebpfMonModule *module, double cost);

/* Nonzero: the IOC has paid more than its budget for ten seconds, and no other module takes more from it than this
 * one, which must take less: modules go first, because no put is to be missed for them. Then the next ten seconds
 * begin. Call it about once a second; now: monotonic s. */
int ebpfMonTargetMustSave(ebpfMonTarget *t, const ebpfMonModule *module, double now);

/* The cost, and what it pays for packets, of which the budget can save nothing. */
static inline double ebpfMonTargetGetWholeCost(const ebpfMonTarget *t)
{
    return ebpfMonTargetGetCost(t) + t->packets.cost;
}

/* The known number of processings of one record; the second function: of all records, now[index]. Under the lock. */
uint64_t ebpfMonTargetCountRecord(const ebpfMonTarget *t, uint32_t index);
void ebpfMonTargetCountRecords(const ebpfMonTarget *t, uint64_t *now);

/* All processings that snapshots counted in its records, without the counts of the trap, and without the corrections
 * that were added when the way of counting changed. Under the lock. */
uint64_t ebpfMonTargetCountSnapshots(const ebpfMonTarget *t);

/* "unseen": EBPFMON_UNSEEN_…, of a record. Under the lock; the follower is to read the record to which was put. */
void ebpfMonTargetNoteUnseen(ebpfMonTarget *t, uint32_t index, uint8_t unseen);

/* Nonzero: what the trap counts is shown, and not what the snapshot does. "how": EBPFMON_BY_TRAP … */
static inline int ebpfMonTargetUsesTrap(uint8_t how)
{
    return how & EBPFMON_BY_TRAP && (!(how & EBPFMON_AT_LEAST) || how & EBPFMON_TRAP_ALONE);
}

/* Nonzero: the count of the record is a lower bound. Under the lock. */
static inline int ebpfMonTargetIsAtLeast(const ebpfMonTarget *t, uint32_t index)
{
    return (t->how[index] & (EBPFMON_AT_LEAST | EBPFMON_MISSED)) != 0;
}

/* Adds to each record's number what the passes of its stretches in one bank count. Returns the sum. "counts" may be
 * NULL. Under the lock. */
uint64_t ebpfMonTargetAddPasses(const ebpfMonTarget *t, int bank, uint64_t *counts);

/* Records with such a name, of IOCs that match "ioc" (model/filter.h). It takes the lock. */
unsigned ebpfMonTargetsCountMatching(ebpfMonTargets *targets, const char *ioc, const char *record);

/* The processes of the IOCs that are not gone and for which this level or a higher one was asked, at most "max", in the
 * order of …ListByRank. Returns the number. It takes the lock. */
unsigned ebpfMonTargetsListPids(ebpfMonTargets *targets, ebpfMonLevel least, pid_t *pids, unsigned max);

/* Nonzero: it is credible that this process is an IOC; any process can have the symbols of one. Its database was read,
 * or it belongs to root, to our own user, or to a user who has such an IOC. Under the lock; the follower needs none. */
int ebpfMonTargetIsCredible(ebpfMonTargets *targets, const ebpfMonTarget *t);

/* Lists all targets, at most "max", in the order of their importance: first the credible ones, the newest first; then
 * those that listen for clients, as IOCs do; then the rest, the oldest first, because an IOC lives long. Returns the
 * number. Under the lock; the follower needs none. */
unsigned ebpfMonTargetsListByRank(ebpfMonTargets *targets, ebpfMonTarget **list, unsigned max);

/* For STATE_MSG: how many targets have a note about trouble, and the text of the first one. Only targets that are to be
 * watched and are credible count. Under the lock. */
unsigned ebpfMonTargetsFindTrouble(ebpfMonTargets *targets, char *buf, size_t size);

/* The follower's alone; they take the lock. Add sets the iocId. Memory stays the caller's. */
void ebpfMonTargetsAdd(ebpfMonTargets *targets, ebpfMonTarget *t);
void ebpfMonTargetsRemove(ebpfMonTargets *targets, ebpfMonTarget *t);

/* The only way to change the note. "remark": it is no trouble. Only the follower calls it; it takes the lock. Nonzero:
 * the text changed. */
int ebpfMonTargetSetNote(ebpfMonTargets *targets, ebpfMonTarget *t, const char *note, int remark);

/* --- texts ---
 *
 * The name of an IOC, the text of its release, and why nothing is seen inside. Only the follower uses this module, but
 * for ebpfMonTargetTextTellApart. */

/* Finds the name of an IOC that is not among the targets yet. If another living IOC has this name, the new one gets its
 * pid behind it. */
void ebpfMonTargetTextFindName(ebpfMonTargets *targets, ebpfMonTarget *t);

/* Any process can claim the name of an IOC by its environment. Puts "#PID" behind the name of this process, which is
 * none of the targets, if a target that lives has it. Takes the lock of the targets. Any thread. */
void ebpfMonTargetTextTellApart(ebpfMonTargets *targets, pid_t pid, char name[EBPFMON_IOCNAME_SIZE]);

/* Reads the text of the release from the memory of the IOC. Takes the lock of the targets. */
void ebpfMonTargetTextReadVersion(ebpfMonTargets *targets, ebpfMonTarget *t);

/* Why nothing is seen inside an IOC with this nameless program. "isRecognised": that of the machine that we run on. */
void ebpfMonTargetTextWriteNameless(const ebpfMonBinary *core, int isRecognised, char note[EBPFMON_NOTE_SIZE]);

/* "precord": the record's address in the memory of the IOC. Nonzero: "name" is set. 0: the catalogue has no such
 * record, or "target" is NULL; "name" is empty. The caller holds the targets lock. */
int ebpfMonRecordNameFind(const ebpfMonTarget *target, uint64_t precord, char *name, size_t size);

#endif
