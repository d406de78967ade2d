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
#define EBPFMON_NOTE_STARTS "starts, or is paused (iocPause)" /* see ebpfMonTargetIsStarting */
#define EBPFMON_NOTE_SILENT "its memory does not answer: set aside until it does"

typedef struct ebpfMonTarget {
    /* Fixed since it was added: any thread, while it holds the lock under which it found this target. */
    pid_t     pid;
    uint64_t  start;       /* with the pid its identity */
    uint32_t  iocId;       /* never used twice */
    uid_t     uid;         /* whose process it is */
    uid_t     user;        /* who pays for it: host/procRead.h */
    uint64_t  foundAt;     /* monotonic ns */
    char      name[EBPFMON_IOCNAME_SIZE];

    /* Shared: the event thread writes these under the lock. */
    struct {
        int      isKnown;      /* nonzero: the kernel part saw its end … */
        uint64_t at;           /* … at this time (monotonic ns) */
        uint32_t code;         /* as in ebpfMonExitEvent */
    } exit;

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
    uint64_t  queuesSince; /* as ebpfMonFollowed.probes.queuesSince, for the publisher of asynchronous records */
    uint64_t  putsSince;   /* monotonic ns: each put that is made from then on is seen inside, because all its probes
                            * are attached; UINT64_MAX: they are not, or begin to go. It stays when the IOC ends */
    struct {
        double now;            /* percent of one core that watching took, over the last seconds; without modules */
        double limit;          /* percent; 0: none, or not known yet */
        double traps, cold;    /* as in ebpfMonCostSpent, when its cost was looked at last */
    } cost;
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
    struct {
        uint32_t at, count;    /* its part of the closure table, UINT32_MAX: none */
        uint32_t oldAt, oldCount; /* its part before; free at the next change */
        ebpfMonStretches *stretch[2]; /* by bank of the kernel part's pass counters; NULL: none */
        uint64_t moved;        /* processings in banks that were emptied since: they are in "adjust" */
    } closures;
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

    /* The packet thread writes these under the lock, and other threads read "cost" and "hasTls" under the lock
     * (packetReader.h). */
    struct {
        int      hasTls;  /* a client has connected over TLS */
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

    struct ebpfMonFollowed *followed; /* the follower's own (watch/followed.h); NULL: it does not follow this one */
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

/* Nonzero: its iocInit is not done, or it was paused when it was found: interruptAccept (iocInit.c) does not tell
 * which. Not if its note tells more. */
static inline int ebpfMonTargetIsStarting(const ebpfMonTarget *t)
{
    return !t->running && t->wantedLevel > ebpfMonLevelOff && !t->note[0];
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

/* --- texts --- */

/* Any process can claim the name of an IOC by its environment. Puts "#PID" behind the name of this process, which is
 * none of the targets, if a target that lives has it. Takes the lock of the targets. Any thread. */
void ebpfMonTargetTextTellApart(ebpfMonTargets *targets, pid_t pid, char name[EBPFMON_IOCNAME_SIZE]);

/* "precord": the record's address in the memory of the IOC. Nonzero: "name" is set. 0: the catalogue has no such
 * record, or "target" is NULL; "name" is empty. The caller holds the targets lock. */
int ebpfMonRecordNameFind(const ebpfMonTarget *target, uint64_t precord, char *name, size_t size);

/* "pv": RECORD or RECORD.FIELD of this IOC; in place of an alias it gets the record's own name. Takes the lock of the
 * targets. */
void ebpfMonRecordNameSettle(ebpfMonTargets *targets, uint32_t iocId, char *pv, size_t size);

#endif
