/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One watched IOC, from the moment it is found until it is forgotten. The target thread makes, changes
 * and forgets targets; other threads read them under ebpfMonTargetsLock.
 */
#ifndef EBPFMON_TARGET_H
#define EBPFMON_TARGET_H

#include <stdint.h>
#include <sys/types.h>

#include "model/filter.h"
#include "probe/attach.h"
#include "probe/calibrate.h"
#include "ioc/catalogue.h"
#include "ioc/closure.h"
#include "ioc/image.h"
#include "ioc/procInfo.h"
#include "ioc/stretch.h"

/* How a record's count is known. */
#define EBPFMON_BY_TRAP   1 /* counted by the trap: a snapshot cannot see it rightly */
#define EBPFMON_AT_LEAST  2 /* … but the trap is not attached: a lower bound */
#define EBPFMON_SHOWN     4 /* matches the filter's record pattern */

typedef struct ebpfMonTarget {
    struct ebpfMonTarget *next;
    pid_t     pid;
    uint64_t  start;       /* with the pid its identity */
    uint32_t  iocId;       /* never used twice */
    char      name[EBPFMON_IOCNAME_SIZE];
    char      version[40];
    char      note[160];   /* diagnosis, or why the level is not the one asked for */
    int       remark;      /* the note is no trouble */
    ebpfMonImage    image;
    ebpfMonMem     *mem;
    ebpfMonAttached att;
    ebpfMonCatalogue *cat; /* NULL: no database yet, or not to be believed */
    long      nodes;       /* record nodes when it was read */
    int       running;     /* iocInit is done: links are resolved, closures made */
    int       gone;        /* ended; kept a while so that its last events still get their names */
    uint64_t  goneAt;      /* ns */
    uint64_t  bornAt;      /* ns; it was found */
    uint64_t  probedAt;    /* ns; last look for new records while it starts */
    int       applied;     /* its level was set since the filter changed */

    /* records in the kernel's tables; by index of the catalogue */
    uint32_t  slot;        /* first one, UINT32_MAX: none */
    uint64_t  slotAt;      /* ns; since when: what is on the ring from before may have the slots of others */
    int       indexed;     /* they are found by address */
    uint32_t  closureAt, closureCount;   /* its part of the closure table, UINT32_MAX: none */
    uint32_t  oldClosureAt, oldClosureCount; /* the part before, given back at the next change */
    ebpfMonStretches *stretch[2]; /* by bank of the kernel's pass counters; NULL: none */
    int       bank;        /* the one that the closures in force use */
    uint8_t  *how;         /* EBPFMON_BY_TRAP … */
    int64_t  *adjust;      /* added to the kernel's counter when the way of counting changed */
    uint32_t  trapped;     /* records that want the trap */
    uint32_t  shown;       /* records that match the filter */

    /* The event thread's own. */
    struct {
        unsigned lateChains; /* in a row, of which all stamps were older than the chain */
    } eventThread;

    /* The publisher's own; the arrays, by index of the catalogue, are made and freed by the follower under the lock. */
    struct {
        uint64_t *counts;    /* at the last publication */
        float    *rate;
        uint64_t procCount;  /* of those that are shown, since it was found */
    } publisher;

    uint64_t  putsSince;   /* ns: all ways to write have been watched from then on */
    uint64_t  queuesSince; /* ns: so have callbacks and scanOnce */
    ebpfMonLevel asked;    /* by the filter or by command */
    ebpfMonLevel level;    /* in force */
    int       reference;   /* dbProcess is trapped too, to compare */
    /* budget */
    ebpfMonLevel ceiling;  /* the governor's */
    int       noTrap;      /* the governor took the trap away first */
    double    cost;        /* percent of one core, over the last seconds */
    struct ebpfMonHits hitsBefore;
    uint64_t  costAt;      /* ns of hitsBefore */
    double    over;        /* seconds above the budget */
    uint64_t  retryAt;     /* ns: when the governor tries a level more again */
    double    retryAfter;  /* s; doubles each time it had to step down again */
} ebpfMonTarget;

/* The IOCs that are watched or could be. */
typedef struct ebpfMonTargets ebpfMonTargets;

ebpfMonTargets *ebpfMonTargetsNew(void); /* NULL without memory */
void ebpfMonTargetsLock(ebpfMonTargets *targets);
void ebpfMonTargetsUnlock(ebpfMonTargets *targets);

/* For the time of the change to contexts only: the list of the monitor. */
extern ebpfMonTargets *ebpfMonTheTargets;

/* Under the lock, but for the target thread. */
ebpfMonTarget *ebpfMonTargetsGetFirst(ebpfMonTargets *targets);
ebpfMonTarget *ebpfMonTargetsFindById(ebpfMonTargets *targets, uint32_t iocId);
ebpfMonTarget *ebpfMonTargetsFindByPid(ebpfMonTargets *targets, pid_t pid); /* not one that is gone */

/* Counts the changes of which targets there are and what is attached to them. Any thread. */
void ebpfMonTargetsNoteChange(ebpfMonTargets *targets);
size_t ebpfMonTargetsCountChanges(ebpfMonTargets *targets);

/* Processings of one record as far as they are known; of all records: now[index]. */
uint64_t ebpfMonTargetCountRecord(const ebpfMonTarget *t, uint32_t index);
void ebpfMonTargetCountRecords(const ebpfMonTarget *t, uint64_t *now);

/* The part of a record's count that the passes of its stretches make up, in one bank. */
uint64_t ebpfMonTargetCountPasses(const ebpfMonTarget *t, int bank, uint32_t index);

/* For the state line: how many targets have something to say, and the first that does. */
unsigned ebpfMonTargetsFindTrouble(ebpfMonTargets *targets, char *buf, size_t size);

/* The target thread's alone; they take the lock. */
void ebpfMonTargetsAdd(ebpfMonTargets *targets, ebpfMonTarget *t);
void ebpfMonTargetsRemove(ebpfMonTargets *targets, ebpfMonTarget *t);

extern ebpfMonCosts ebpfMonCost;

#endif
