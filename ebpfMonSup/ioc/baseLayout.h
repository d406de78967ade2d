/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Structs of Base in the memory of another process, so pointers are numbers. Here is what all releases share
 * (layoutAll.h, with which the members are compared); what differs is at the end. Members that came later, or
 * that we do not use, are "skip".
 */
#ifndef EBPFMON_BASELAYOUT_H
#define EBPFMON_BASELAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonBase.h"

#define LAYOUT_ALIAS_MARK 0x80 /* ours, while a catalogue is read */

struct layoutNode { /* ELLNODE */
    uint64_t next, prev;
};

struct layoutList { /* ELLLIST: node.next is the first, node.previous the last */
    uint64_t first, last;
    int32_t  count, pad;
};

struct layoutRecordType { /* dbRecordType */
    struct layoutNode node;
    struct layoutList attributeList, recList, devList, cdefList;
    uint64_t name;
    int16_t  no_fields, no_prompt, no_links, no_aliases;
    uint64_t link_ind, papsortFldName, sortFldInd, pvalFldDes;
    int16_t  indvalFlddes, pad[3];
    uint64_t papFldDes, prset;
    int32_t  rec_size;
};

struct layoutRecordNode { /* dbRecordNode */
    uint64_t next, prev;
    uint64_t precord, recordname;
    struct layoutList infoList;
    int32_t  flags;
};

struct layoutFldDes { /* dbFldDes */
    uint64_t prompt, name, extra, pdbRecordType;
    int16_t  indRecordType, special;
    uint32_t field_type;
    uint32_t bits; /* process_passive:1, prop:1, isDevLink:1 */
    uint32_t base;
    int16_t  promptgroup, interest;
    uint32_t as_level;
    uint64_t initial, ftPvt;
    int16_t  size;
    uint16_t offset;
};

struct layoutDbAddr { /* dbAddr */
    uint64_t precord, pfield, pfldDes;
    int64_t  no_elements;
    int16_t  field_type, field_size, special, dbr_field_type;
};

struct layoutDbChannel { /* the head of dbChannel */
    uint64_t name;
    struct layoutDbAddr addr;
};

struct layoutScanElement { /* dbScan.c: scan_element, where dbCommon.spvt leads to once a record was in a scan list */
    struct layoutNode node;
    uint64_t pscan_list, precord;
};

struct layoutScanList { /* dbScan.c: scan_list */
    uint64_t lock;
    struct layoutList list;
};

struct layoutPeriodicList { /* dbScan.c: periodic_scan_list; before 3.15 it has no name */
    struct layoutScanList list;
    int16_t  modified, pad[3];
    double   period; /* s */
    uint64_t name, overruns;
    int32_t  scanCtl;
};
#define LAYOUT_SCANCTL_RUN 1 /* dbScan.c: enum ctl, ctlRun */

struct layoutLockRecord { /* dbLockPvt.h, before 3.16 dbLock.c: lockRecord, where dbCommon.lset leads to; its head */
    struct layoutNode node;
    uint64_t plockSet, precord;
};

struct layoutLockSet { /* dbLockPvt.h, before 3.16 dbLock.c: the head of lockSet */
    struct layoutNode node;
    struct layoutList records;
    uint64_t lock, id;
};

struct layoutMenu { /* dbMenu */
    struct layoutNode node;
    uint64_t name;
    int32_t  nChoice, pad;
    uint64_t papChoiceName, papChoiceValue;
};

struct layoutDeviceMenu { /* dbDeviceMenu */
    int32_t  nChoice, pad;
    uint64_t papChoice;
};

#define ALL(type, member, number) \
    _Static_assert(offsetof(struct layout##type, member) == (number), "struct layout" #type "." #member);
#define NUMBER(name, number)
#include "layoutAll.h"
#undef ALL
#undef NUMBER
_Static_assert(sizeof(struct layoutDbAddr) == EBPFMON_DBADDR_SIZE, "dbAddr");

/* --- what differs between releases ---
 *
 * A table of layouts, which tools/layout.sh made of the sources of each release (bpf/contract/layouts.h). The memory of
 * an IOC chooses: the first layout that fits is taken, because sites change their releases, and the text of the version
 * does not show that. Modules have tables of their own, and numbers by hand that all releases share
 * (tools/layoutNumbers.h: EVENTS, QUEUES, SAME). The table does not change; any thread.
 */

/* Members have Base's names, and the order of tools/layoutNumbers.h. 0: this release has none, or it is the first
 * member. */
typedef struct {
    const char *releases; /* "7.0.9 to 7.0.10" */
    /* dbFldTypes.h: before 3.16.1 there is no DBF_INT64 nor DBF_UINT64, and all types after DBF_ULONG have smaller
     * numbers. In the monitor each type has the number of EPICS 7 (ebpfMonBaseReleaseType). */
    struct { uint16_t menu, inlink, fwdlink, noaccess; } dbf;
    struct { uint16_t size, precord, type, constantStr, pvname, pvt, pvlMask; } link; /* link.h */
    struct { uint16_t chan, usrPvt; } notify;     /* dbNotify.h: struct processNotify, before 3.15 struct putNotify */
    /* rsrv/server.h: struct channel_in_use, before 3.15 with a DBADDR as dbch; struct client, its recv */
    struct { uint16_t dbch, client, eventq, sid, time_at_creation, asClientPVT; } channel;
    struct { uint16_t access; } asgClient;        /* asLib.h */
    struct {
        uint16_t recvBuf, recvStk, recvCnt, addr, pUserName, pHostName, chanList, chanPendingUpdateARList;
    } client;
    struct {
        uint16_t channels;    /* dbChannel.h; before 3.15 a DBADDR stands in the place of a dbChannel */
        uint16_t threadNames; /* osdThread.c gives each thread's name to the system */
        uint16_t lockMany;    /* dbLock.c: dbScanLockMany */
        uint16_t onceLink;    /* dbScan.c: the third argument of scanOnceCallback */
    } has;
    struct { uint16_t nextPush; } ring;           /* epicsRingPointer.h */
    struct { uint16_t pFileName, lineno, osd, id; } mutex; /* epicsMutexParm; since 7.0.9 osd instead of id */
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
