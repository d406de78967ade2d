/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs between releases of EPICS Base: a table of layouts, which tools/layout.sh made of the sources of each
 * release (bpf/contract/layoutRELEASE.h). The memory of an IOC chooses: the first layout that fits is taken, because
 * sites change their releases, and the text of the version does not show that. No other file depends on the release.
 * What all releases have in common is in baseLayout.h. The table does not change; any thread.
 */
#ifndef EBPFMON_BASERELEASE_H
#define EBPFMON_BASERELEASE_H

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonBase.h"

/* Members have Base's names. 0: this release has none, or it is the first member. */
typedef struct {
    const char *releases; /* "7.0.9 to 7.0.10" */
    /* dbFldTypes.h: before 3.16.1 there is no DBF_INT64 nor DBF_UINT64, and all types after DBF_ULONG have smaller
     * numbers. In the monitor each type has the number of EPICS 7 (ebpfMonBaseReleaseType). */
    struct { uint16_t menu, inlink, fwdlink, noaccess; } dbf;
    struct { uint16_t size, precord, type, constantStr, pvname, pvt, pvlMask; } link; /* link.h */
    /* rsrv/server.h: struct client, its recv; struct channel_in_use, before 3.15 with a DBADDR as dbch */
    struct {
        uint16_t recvBuf, recvStk, recvCnt, addr, pUserName, pHostName, chanList, chanPendingUpdateARList;
    } client;
    struct { uint16_t client, dbch, eventq, sid, time_at_creation, asClientPVT; } channel;
    struct { uint16_t access; } asgClient;        /* asLib.h */
    struct { uint16_t chan, usrPvt; } notify;     /* dbNotify.h: struct processNotify, before 3.15 struct putNotify */
    struct { uint16_t nextPush; } ring;           /* epicsRingPointer.h */
    struct { uint16_t pFileName, lineno, id, osd; } mutex; /* epicsMutexParm; since 7.0.9 osd instead of id */
    struct {
        uint16_t channels;    /* dbChannel.h; before 3.15 a DBADDR stands in the place of a dbChannel */
        uint16_t threadNames; /* osdThread.c gives each thread's name to the system */
        uint16_t lockMany;    /* dbLock.c: dbScanLockMany */
        uint16_t onceLink;    /* dbScan.c: the third argument of scanOnceCallback */
    } has;
} ebpfMonBaseRelease;

/* What an IOC's own description of its records (dbFldDes) shows: DBF numbers of fields of dbCommon, and the size of a
 * link field. */
typedef struct {
    uint16_t scan, flnk, sdis, time;
    uint16_t linkSize;
} ebpfMonBaseEvidence;

/* The layouts, the newest first. NULL: there are no more. */
const ebpfMonBaseRelease *ebpfMonBaseReleaseGet(unsigned index);

/* Finds the first layout with this evidence. NULL with a diagnosis in "why": there is none, so nothing in the memory of
 * this IOC can be believed. */
const ebpfMonBaseRelease *ebpfMonBaseReleaseFind(const ebpfMonBaseEvidence *seen, char *why, size_t size);

/* Nonzero: the same evidence has led to both, so what was read of records by one of them is right by the other. */
int ebpfMonBaseReleaseIsAlike(const ebpfMonBaseRelease *a, const ebpfMonBaseRelease *b);

/* The number that a type of this IOC has in EPICS 7. */
static inline uint16_t ebpfMonBaseReleaseType(const ebpfMonBaseRelease *release, uint16_t type)
{
    return type > EBPFMON_DBF_ULONG ? (uint16_t)(type + EBPFMON_DBF_MENU - release->dbf.menu) : type;
}

#endif
