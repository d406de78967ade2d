/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small IOC: what the threads of EPICS Base do with locks, records and scan lists, with the probes at the places
 * where the monitor attaches them (ebpfMonSup/probe/attach.c, placeOf). The functions have the names of those of Base,
 * and do in the same order what matters to the probes.
 */
#ifndef EXPLORE_IOC_H
#define EXPLORE_IOC_H

#include <stdint.h>

#define IOC_RECORDS_MAX 8
#define IOC_LISTS_MAX   3
#define IOC_LIST_MAX    6
#define IOC_MANY_MAX    4

typedef struct iocRecord iocRecord;

/* dbLockPvt.h: struct lockSet */
typedef struct {
    uint64_t owner; /* 1 + the thread that has it; 0: none */
    uint64_t depth;
} iocLockSet;

/* struct lockRecord. The members are where ebpfMonBase.h has them, here and in what follows. */
typedef struct {
    uint64_t pad[2];
    iocLockSet *set;
    iocRecord *precord;
} iocLockRecord;

typedef struct iocList iocList;

/* dbScan.c: struct scan_element, struct scan_list */
typedef struct iocElement {
    struct iocElement *next, *previous;
    iocList *list;
    iocRecord *precord;
} iocElement;

struct iocList {
    uint64_t *mutex;
    iocElement *first;
    uint64_t owner; /* of the mutex: 1 + thread */
    uint64_t isModified;
};

enum { iocSync, iocAsync, iocAsyncStampsFirst };

/* What the monitor reads of dbCommon, and what the scene needs. */
struct iocRecord {
    char name[96]; /* long, because the monitor reads EBPFMON_TIME_WINDOW bytes before TIME */
    iocLockRecord *lset;
    iocElement *spvt;
    iocRecord *flnk; /* the forward link … */
    iocRecord *out;  /* … an output link with PP, to VAL … */
    iocRecord *inp;  /* … and an input link without PP */
    void *ppn;
    int16_t scan;    /* 0: Passive */
    int16_t phas, tse;
    uint16_t stat, sevr;
    uint8_t disp, proc, kind;
    uint8_t isDisabled;
    uint8_t pact;
    uint64_t time;
    double val;
};

/* dbAddr.h */
typedef struct {
    iocRecord *precord;
    void *pfield;
    void *pfldDes;
    int64_t elements;
    int16_t fieldType, fieldSize, special, dbrType;
} iocAddr;

/* struct dbLocker: maxrefs at 32, refs at 40 */
typedef struct {
    uint64_t pad[4];
    uint64_t maxrefs;
    struct { iocLockRecord *plr; uint64_t set; } refs[IOC_MANY_MAX];
} iocLocker;

/* The programs, in the order of enum ebpfMonProg (probe/kernelLoad.h). */
typedef enum {
    iocPut, iocPutReturn, iocPutField, iocLock, iocPassBegin, iocUnlock, iocPassCount, iocPassNext,
    iocListEnd, iocLocked, iocAsk, iocAskMany, iocProcessCall, iocUnlockMany, iocCompleted, iocProcess, iocProgramCount
} iocProgram;

#define IOC_BIT(program) (1u << (program))

/* Who calls dbScanLock() or dbScanUnlock(): a program is attached to the calls of one kind after the other. */
typedef enum { iocOther, iocByPutField, iocByCallback, iocByScanList, iocCallerCount } iocCaller;

typedef struct {
    iocRecord record[IOC_RECORDS_MAX];
    unsigned count;
    iocList list[IOC_LISTS_MAX];
    unsigned listCount;
    uint8_t attached[iocProgramCount][iocCallerCount];
    uint32_t running[8];  /* by thread: odd while it is in a program; another number for each run */
    uint64_t stack[8][64]; /* by thread: its stack in the IOC */
    uint8_t value[8];     /* that clients put */
    uint32_t callbacks;   /* requests of callbacks, by a bit for each record */
    uint32_t requesters;  /* threads that may request one */
} ioc;

extern ioc *iocOne; /* in shared memory */

extern uint64_t iocTraps; /* runs of programs */

/* How often each record has processed, to its end: the truth. */
extern uint64_t iocProcessed[IOC_RECORDS_MAX];

void iocMake(void);
iocRecord *iocAddRecord(const char *name, int kind);
void iocJoin(iocRecord *a, iocRecord *b); /* a link connects them: they have one lock set */
void iocAddToList(unsigned list, iocRecord *r);
void iocBegin(void); /* at the begin of each run */

/* --- what threads do --- */
void iocScanList(unsigned list);                /* a pass */
void iocPutToField(iocRecord *r, int processes); /* dbPutField() to PROC, or to VAL of a record that this does not
                                                 * make process */
void iocProcessIt(iocRecord *r);                /* scanOnce, or a driver: lock, process, unlock */
void iocProcessMany(iocRecord **r, unsigned count); /* a driver: one lock, and each by dbProcess() */
void iocProcessUnseen(iocRecord *r);            /* the same, but it took the lock before the probes were there */
void iocRunCallbacks(iocRecord *r);             /* does the callbacks of this record until nobody requests one */
void iocEndRequests(void);                      /* this thread requests none any more */
void iocPutFlnk(iocRecord *r, iocRecord *to);   /* dbPutField() to FLNK */
void iocPutScan(iocRecord *r, int list);        /* dbPutField() to SCAN; -1: Passive */
void iocPutGroup(iocRecord **r, unsigned count); /* dbScanLockMany(), puts, dbScanUnlockMany() */
void iocReadMany(iocRecord **r, unsigned count); /* the same without puts */

#endif
