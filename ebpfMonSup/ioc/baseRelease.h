/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs between releases of EPICS Base, from 3.14.12 on. No other file depends on the release. The release of an
 * IOC is decided by what its memory shows, and not by the text of its version, because sites change their releases.
 * What all releases have in common is in baseLayout.h.
 *
 * Compared in the sources of 3.14.1 to 3.14.12.8, 3.15.0.1 to 3.15.9, 3.16.0.1 to 3.16.2 and 7.0.2 to 7.0.10.
 */
#ifndef EBPFMON_BASERELEASE_H
#define EBPFMON_BASERELEASE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    /* dbFldTypes.h: before 3.16.1 there is no DBF_INT64 nor DBF_UINT64, and all types after DBF_ULONG have numbers that
     * are smaller by 2. This is added to them, so that in the monitor each type has the number of EPICS 7. */
    uint16_t dbfGap;
    /* link.h: struct link. Before 3.16.0.1 only a pv_link has the address of its record */
    uint16_t linkOwner, linkType, linkValue, linkPvname, linkPvt, linkPvlMask;
    /* rsrv/server.h: struct client, its chanList, its chanPendingUpdateARList */
    uint16_t clAddr, clUser, clHost, clRecvBuf, clRecvStk, clRecvCnt;
    uint16_t clChans, clPending;
    uint16_t ciuClient, ciuDbch, ciuAs; /* rsrv/server.h: struct channel_in_use; without channels ciuDbch is a DBADDR */
    uint16_t asAccess;        /* asLib.h: struct asgClient */
    uint16_t ppnChan, ppnUsr; /* dbNotify.h: struct processNotify, before 3.15 struct putNotify */
    /* dbChannel.h: the DBADDR in a dbChannel. 0: there are no channels before 3.15, and a DBADDR stands in their
     * place */
    uint16_t chanAddr;
    uint16_t ringHead;        /* libCom/ring/epicsRingPointer.h: nextPush; before it lies the lock, which 3.14 has
                               * not */
    uint16_t hasThreadNames;  /* osdThread.c gives each thread's name to the system, since 3.15 */
    uint16_t hasLockMany;     /* dbLock.c: dbScanLockMany, since 3.16 */
    uint16_t onceHasLink;     /* dbScan.c: the third argument of scanOnceCallback; before 3.16 there is scanOnce
                               * alone */
} ebpfMonBaseRelease;

/* Evidence of the release in an IOC's own description of its records (dbFldDes): DBF numbers of fields of dbCommon, and
 * the size of a link field. */
typedef struct {
    uint16_t scan, flnk, sdis, time;
    uint16_t linkSize;
} ebpfMonBaseEvidence;

/* Finds the release with this evidence. 0; -1 with a diagnosis in "why": no known release has it, so nothing in the
 * memory of this IOC can be believed. */
int ebpfMonBaseReleaseFind(const ebpfMonBaseEvidence *seen, ebpfMonBaseRelease *release, char *why, size_t size);

/* The IOC has dbPutNotify instead of dbProcessNotify: EPICS 3.14. */
void ebpfMonBaseReleaseSetPutNotify(ebpfMonBaseRelease *release);

/* The release of EPICS 7, with which the monitor itself is built. */
const ebpfMonBaseRelease *ebpfMonBaseReleaseOwn(void);

/* The number that a type of this IOC has in EPICS 7. */
static inline uint16_t ebpfMonBaseReleaseType(const ebpfMonBaseRelease *release, uint16_t type)
{
    return type > 6 /* DBF_ULONG */ ? (uint16_t)(type + release->dbfGap) : type;
}

#endif
