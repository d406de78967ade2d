/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues of one IOC, as Base has them in memory: callback queues (callback.c), scanOnce (dbScan.c), the work list
 * of CA links (dbCa.c), the messages of errlog (errlog.c). The variables are static, so symbols tell where they are.
 * What was found is read in one job. Only queues.c uses this, without a lock, in its thread.
 */
#ifndef EBPFMON_QUEUEIOC_H
#define EBPFMON_QUEUEIOC_H

#include <stdint.h>
#include <sys/types.h>

#include "host/memory.h"
#include "host/procInfo.h"
#include "ioc/catalogue.h"

/* Offsets and sizes, in the order of tools/layoutNumbers.h (queueLayouts.h). 0: this release has none. */
typedef struct {
    const char *releases;
    uint16_t onceEntry;     /* size; 0: scanOnce has a ring of pointers */
    uint16_t setSize, setQueue, setOverflows;
    uint16_t callbackUser, callbackSize;
    uint16_t bytesPut, bytesGet, bytesSize, bytesHigh, bytesBuffer;
    uint16_t logSize, logRoom, logLost, logLog, logBufs; /* logLog 0: errlog.c of before 7.0.7 */
    uint16_t linkPlink, linkPvname, linkIsConnected, linkGotFirst;
    uint16_t ringPush, ringPop, ringSize, ringHigh, ringBuffer;
} ebpfMonQueueLayout;

/* The layouts, the newest first. NULL: there are no more. */
const ebpfMonQueueLayout *ebpfMonQueueLayoutGet(unsigned index);

typedef enum {
    ebpfMonQueueLow, ebpfMonQueueMedium, ebpfMonQueueHigh, ebpfMonQueueOnce, ebpfMonQueueLinks, ebpfMonQueueLog,
    ebpfMonQueueCount
} ebpfMonQueueKind;

extern const char *const ebpfMonQueueNames[ebpfMonQueueCount]; /* "cbLow", … */

#define EBPFMON_QUEUE_FILLERS 300

typedef struct {
    int      isKnown;
    double   used, size, high; /* entries; of errlog bytes. NaN: not known */
    double   overflows; /* as Base counts them; of errlog lost messages that were seen, at least. NaN: Base has no
                         * counter */
    unsigned lately;    /* of the last update; at the first one of all that the caller may call new */
    int      isOverHalf; /* at the update, or the high-water mark rose above the half since the one before */
    uint64_t overflowAt, halfAt; /* monotonic ns: when it was seen last; 0: never */
    char     fillers[EBPFMON_QUEUE_FILLERS]; /* records with the most entries, when it was over half or overflowed */
    int      isTold;    /* queues.c's own: an event tells that it is over half */
    uint32_t place;     /* queueIoc.c's own: of its ring in the bytes, or 0 */
    uint64_t ring;      /* … and in the IOC */
    uint64_t moved;     /* … its indexes and counters at the last update */
} ebpfMonQueue;

typedef struct {
    uint32_t id;            /* ebpfMonTarget.iocId */
    pid_t    pid;
    uid_t    user;          /* who pays for the search */
    char     name[EBPFMON_IOCNAME_SIZE];
    int      isNew;         /* it started after the module did: what it lost was not lost before */
    ebpfMonCatalogue *cat;  /* a reference of its own, as long as the caller needs it */
    char     why[160];      /* why its queues are not known; "": they are, or not yet */
    ebpfMonQueue queue[ebpfMonQueueCount];
    int      isRead;        /* the last update was possible */
    int      hasMoved;      /* … and something moved */
    uint64_t updatedAt;     /* monotonic ns; 0: never */
    uint64_t searchCpu;     /* CPU time of the last update that went into the search for symbols; ns */
    int      isSeen;        /* queues.c's own */
    /* queueIoc.c's own */
    const ebpfMonQueueLayout *layout; /* NULL: its queues were not found */
    uint64_t searchedAt;
    struct { uint64_t sets, once, overruns, links, log; } at; /* addresses; 0: not found */
    uint32_t overruns;      /* its place in the bytes; 0: none */
    ebpfMonMemPart part[10];
    unsigned parts;
    uint32_t bytes;
} ebpfMonQueueIoc;

/* Finds the queues if they were not found, and reads them. */
void ebpfMonQueueIocUpdate(ebpfMonQueueIoc *ioc, uint64_t now);

#endif
