/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the follower knows of a watched IOC, beside what it shares with others (watch/target.h). Only the room watch
 * includes this file, and only the follower's thread uses these structs: no lock. All times are monotonic ns, if
 * nothing else is said.
 */
#ifndef EBPFMON_FOLLOWED_H
#define EBPFMON_FOLLOWED_H

#include <stdint.h>

#include "host/memory.h"
#include "probe/attach.h"
#include "probe/calibrate.h"
#include "watch/budget.h"
#include "watch/target.h"
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

/* --- an IOC --- */

#define EBPFMON_ODD_SERVER 5 /* odd.server from which on nothing of its CA server is believed */

typedef struct ebpfMonFollowed {
    ebpfMonMem *mem;
    ebpfMonAttached att;
    ebpfMonBudget budget;
    ebpfMonFunctionTrial functions; /* used if image.core has no symbols of its own */
    struct ebpfMonTypeTrial *trial; /* of the record types that are not Base's; NULL: none */
    uint32_t  trapped;         /* records that want the trap */

    /* From its start to its end (targetLife.c, follower.c). */
    struct {
        uint64_t  endedAt;
        int       isOver;      /* then, its process ended; 0: it began to run another program */
        uint64_t  lookAt;      /* next look whether iocInit is done, while it starts */
        uint64_t  nextAt;      /* its next look, if its user has cost too much */
        int       wasThere;    /* it was found when the monitor looked around for the first time */
        int       initDone;    /* iocInit was seen done */
        int       levelApplied; /* since the filter changed */
        int       isPrepared;  /* links, code and locks were read, and records have slots: levels above off can begin */
        int       silent;      /* its memory does not answer */
        int       hadBreakpoints; /* since it was found */
    } life;

    /* Its database (targetDatabase.c). */
    struct {
        long      nodes;       /* record nodes when the catalogue was read */
        uint64_t  readAt;      /* not before, its database is read or looked through again */
        uint64_t  listensAt;   /* not before, its sockets are looked at again */
        int       isShort;     /* too little memory is left for its records, or for those that were loaded later */
    } database;

    /* The files that call dbScanLock (targetLife.c). */
    struct {
        uint64_t  at;          /* when they were looked for */
        uint64_t  pages;       /* … and how much it had mapped then; 0: they are looked for once more */
        unsigned  missed;      /* such looks in a row that failed */
    } callers;

    /* What lies in memory as in no known release of Base. */
    struct {
        uint32_t  links;
        int       locks;       /* its lock sets do */
        uint64_t  at;          /* not before, links and locks are looked at again */
        unsigned  server;      /* looks in a row at which its CA server did */
        const char *member;    /* … and the member of a struct that showed this at the last look */
        int       isServerKnown; /* its CA server lies as expected */
    } odd;

    /* The clock of the host, for its time stamps (targetLife.c). */
    struct {
        int       wentBack;    /* it did, and the records are not marked yet */
        uint64_t  setSince;    /* … it was set back a little after this (ns since 1970); 0: it was not */
        uint64_t  setAt;       /* when that was noticed */
        int       isAhead;     /* the IOC was seen to be ahead of it, and its records are marked */
        uint32_t  next;        /* record at which the next look begins */
    } clock;

    /* Its records in the tables (recordTables.c, closureTable.c). */
    struct {
        int       hasNoShare;  /* other IOCs gave up their places for it, and it could not use them */
        int       hasArrays;   /* the kernel part knows its array fields */
        int       counted;     /* its processings were, before this, since it got its slots */
        int       busyAtBegin; /* one of them was processing asynchronously when counting began */
        void     *arrays;      /* the block of all arrays by record that a slot brings along */
        uint64_t *resumed;     /* by record: its stamp before the probes were attached again; NULL: no interruption */
        int       bank;        /* of the pass counters, that the closures in force use */
    } records;

    /* Its probes (governor.c, levelChoice.c). */
    struct {
        int       hasLists;    /* its scan lists are where the kernel part looks for them */
        int       reference;   /* dbProcess is trapped too, to compare */
        int       isPutLockSeen; /* ebpfMonTargetConf.isPutLockSeen */
        uint16_t  serving, servings; /* ebpfMonTargetConf.serving, and its last number */
        uint64_t  queuesSince; /* callbacks and scanOnce have been watched from then on */
        int       noFiles;     /* no files are left for them */
        int       hasTls;      /* its packets have shown that a client uses TLS */
        int       nameDenied;  /* its environment may not be read: it may have another name */
    } probes;

    /* Passes that are watched in place of chains (sweeps.h, recordSweeps.c). */
    struct {
        uint32_t number;       /* nonzero: they are; another number each time */
        int      ends;         /* chains are watched, too: until the last pass is over that was not seen by them */
        int      lost;         /* its links or lists do not allow it any more */
        int      broken;       /* its probes cannot be attached */
        int      isScanPutSeen; /* ebpfMonTargetConf.isScanPutSeen */
        int      serial;       /* no scan list is scanned by two threads at a time */
        uint64_t since;        /* when they began to be watched */
        uint64_t puts;         /* ebpfMonPassNotes.putsBegun when its lists were read */
        uint64_t missed, unsure; /* of ebpfMonPassNotes at the last look … */
        uint64_t slow, slowBefore, slowItself; /* … and these; "slow" goes on when passes begin anew */
        uint64_t tryAt;        /* not before, it is tried … */
        uint64_t pause;        /* … again after this, if it does not fit */
        uint64_t endsAt;       /* since then it ends */
        struct ebpfMonSweepPlan *plan;
    } sweep;

    /* Which chains are timed (governor.c). */
    struct {
        int      all;          /* a command or the filter wants all chains of this IOC timed */
        int      inTurns;      /* at its level, chains of scan lists are to be timed in turns, if passes can be
                                * watched */
        uint32_t number;       /* ebpfMonTargetConf.turn */
        int      untimed;      /* ebpfMonTargetConf.untimed */
        int      parallel;     /* ebpfMonTargetConf.parallel */
        ebpfMonTurns turns;
        double   timedBefore;  /* ebpfMonTurnsTimed at the last sample of the cost; below 0: they have begun since */
    } timing;

    /* At the last look at its cost (governor.c). */
    struct {
        struct ebpfMonHits hits;
        uint64_t  at;          /* 0: never */
        uint64_t  cpu;         /* CPU time of its process then, ns */
    } cost;
} ebpfMonFollowed;

/* A target that is followed, all 0. Both are one block, which free() frees. NULL without memory. */
ebpfMonTarget *ebpfMonFollowedNew(void);

/* Finds the name of an IOC that is not among the targets yet. If another living IOC has this name, the new one gets its
 * pid behind it. */
void ebpfMonFollowedFindName(ebpfMonTargets *targets, ebpfMonTarget *t);

/* Reads the text of the release from the memory of the IOC. Takes the lock of the targets. */
void ebpfMonFollowedReadVersion(ebpfMonTargets *targets, ebpfMonTarget *t);

/* Why nothing is seen inside an IOC with this nameless program. "isRecognised": that of the machine that we run on. */
void ebpfMonFollowedWriteNameless(const ebpfMonBinary *core, int isRecognised, char note[EBPFMON_NOTE_SIZE]);

#endif
