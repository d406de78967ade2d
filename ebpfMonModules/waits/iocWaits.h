/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What waits in one IOC: records that are active (PACT), and puts with completion (dbNotify.c of Base), read from the
 * IOC's memory. The records are looked at in parts; one that was found active, and a put that was found, are looked at
 * each time. Only the thread of waits.c uses this module.
 */
#ifndef EBPFMON_IOCWAITS_H
#define EBPFMON_IOCWAITS_H

#include <epicsTime.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonEvent.h"
#include "host/memory.h"
#include "host/procInfo.h"
#include "ioc/catalogue.h"
#include "waits/waitGraph.h"

#define EBPFMON_WAITED_MAX 64 /* records for which a put waits; further ones are counted only */
#define EBPFMON_WAIT_TEXT  400

/* A record that is active, or that a put waits for. Times are monotonic ns. */
typedef struct {
    uint32_t record;        /* index in the catalogue */
    uint64_t since;         /* it is active since then, or before */
    epicsTimeStamp time;
    int      isActive;      /* PACT is 1 */
    int      isUnsure;      /* its time stamp does not tell whether it processed meanwhile: "since" says nothing */
    uint8_t  lcnt;          /* how often it was to be processed meanwhile, as far as Base counts */
    uint64_t ppn, ppnr;
    char     what[160];     /* its type, device and address; "": not read yet */
    char     begun[160];    /* who began; "": not known */
} ebpfMonActiveRecord;

/* A put with completion that is under way. */
typedef struct {
    uint64_t at;            /* its processNotify */
    uint64_t chan;          /* its dbChannel, before 3.15 its DBADDR */
    uint64_t since;         /* it is under way since then; isExact: exactly, else or before */
    int      isExact;
    int      isQueued;      /* another put holds its record, which has to complete first */
    int      hasWritten;    /* its value was written: a put event tells of it */
    int      isProcess;     /* it asks for processing only: there is no value */
    uint32_t record;        /* to which it writes */
    epicsTimeStamp time;    /* time stamp of this record */
    char     pv[80]; /* as the client wrote it */
    char     field[80]; /* as puts name it: RECORD.FIELD, only RECORD for VAL */
    char     peer[24];      /* address:port of a Channel Access client; "": it is none */
    uint64_t client;        /* … its struct client */
    char     who[128];      /* user@host, as it claims; "": not known */
    struct {
        int    isKnown;     /* the rest is that of its put event; without the value, if several fit */
        char   user[40], host[64], value[80];
        int    through;     /* ebpfMonThrough */
        int    isNumber;
        double number;
        epicsTimeStamp time; /* valid if isExact */
    } note;
    char     process[80];   /* "command (pid)", if it is known */
    uint32_t waited[EBPFMON_WAITED_MAX], waitedCount; /* … waitedCount: all */
    uint64_t seenAt;        /* the last look at which it was there */
    int      isTold;        /* IOC_EVENTS tells of it */
} ebpfMonWaitingPut;

/* Why a thread hangs (waitGraph.h), in one sentence. */
typedef struct {
    pid_t    tid;
    uint64_t begin;         /* of its hang, which tells it from another one; 0: not known … */
    uint64_t switches;      /* … then: how often the thread has run */
    uint64_t since;         /* it is known to hang since then, or before */
    int      isOld;         /* the reading before had it, too */
    char     name[16];
    char     text[EBPFMON_WAIT_TEXT], brief[80];
    char     waiters[1000]; /* a line for each thread that waits for this one */
    int      isLate;        /* it does not hang: it is a scan thread that is late */
    int      isForEver;     /* a deadlock, or a mutex whose owner has ended */
    int      isTold;        /* 1: IOC_EVENTS tells of it; 2: … that it is for ever */
} ebpfMonHangCause;

#define EBPFMON_HANG_CAUSES 8

typedef struct {
    uint32_t id;            /* ebpfMonTarget.iocId */
    pid_t    pid;
    char     name[EBPFMON_IOCNAME_SIZE];
    ebpfMonCatalogue *cat;  /* one reference */
    ebpfMonMem *mem;
    uint32_t next;          /* the turn begins at this record */
    unsigned rounds;        /* how often all of them were looked at */
    int      isRead;        /* the last look was possible */
    ebpfMonActiveRecord *active;
    size_t   actives, activeRoom;
    ebpfMonWaitingPut *put;
    size_t   puts, putRoom;
    /* waits.c's own */
    int      isSeen;
    ebpfMonWaitGraph graph; /* while something hangs */
    unsigned graphs;        /* how often it was read since then … */
    uint64_t graphAt;       /* … and when */
    ebpfMonHangCause cause[EBPFMON_HANG_CAUSES];
    unsigned causes;
    uint64_t lateToldAt;    /* when IOC_EVENTS told of a late scan */
} ebpfMonIocWaits;

/* Sets the catalogue, of which the caller gives one reference. What is known stays if the records are the same. */
void ebpfMonIocWaitsSetCatalogue(ebpfMonIocWaits *ioc, ebpfMonCatalogue *cat);
void ebpfMonIocWaitsClear(ebpfMonIocWaits *ioc);

/* Looks at so many records in turn, and at all that is known to wait. */
void ebpfMonIocWaitsLook(ebpfMonIocWaits *ioc, uint32_t records, uint64_t now);

/* "REC (calcout, asyn …, active for at least 12 s …)": for what a put waits, in one line. */
void ebpfMonIocWaitsDescribe(ebpfMonIocWaits *ioc, const ebpfMonWaitingPut *put, uint64_t now, char *text, size_t size);
void ebpfMonIocWaitsDescribeRecord(ebpfMonIocWaits *ioc, ebpfMonActiveRecord *r, uint64_t now, char *text, size_t size);

/* Sets r->begun: as the kernel part has seen it. */
void ebpfMonIocWaitsSetBegun(ebpfMonIocWaits *ioc, const struct ebpfMonCauseEvent *cause, ebpfMonActiveRecord *r);

/* The record in the list; NULL: it is not there. */
ebpfMonActiveRecord *ebpfMonIocWaitsFind(ebpfMonIocWaits *ioc, uint32_t record);

#endif
