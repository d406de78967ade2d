/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the structs of dbBase.h, ellLib.h, link.h and dbChannel.h lie in memory on a 64-bit machine. Read
 * from another process, so pointers are numbers. The same from EPICS 3.14.12 to 7.0.10 in the members that
 * are named here; members that came later, or that we do not use, are "skip". What differs is in baseRelease.h.
 */
#ifndef EBPFMON_BASELAYOUT_H
#define EBPFMON_BASELAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonBase.h"

#define LAYOUT_RECORDTYPELIST 24     /* dbBase.recordTypeList */
#define LAYOUT_RECLIST        40     /* dbRecordType.recList */
#define LAYOUT_SPC_DBADDR     2      /* special.h */
#define LAYOUT_ISALIAS        2      /* dbStaticLib.h: DBRN_FLAGS_ISALIAS */
#define LAYOUT_ALIAS_MARK     0x8000 /* ours, while a catalogue is read */

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

struct layoutPvLink { /* struct link with value.pv_link, since 3.16.0.1 */
    uint64_t precord;
    int16_t  type;
    uint16_t flags;
    uint32_t pad;
    uint64_t lset, text;
    uint64_t backNext, backPrev; /* backlinknode */
    uint64_t pvname, pvt, getCvt;
    int16_t  pvlMask, lastGetdbrType;
};

struct layoutOldLink { /* … in 3.14.12 and 3.15 */
    uint64_t pvname, precord, pvt, getCvt;
    int16_t  pvlMask, lastGetdbrType;
    uint32_t pad;
    int16_t  type, pad2[3];
    uint64_t text;
};

#define LAYOUT_LINK_SIZE    sizeof(struct layoutPvLink)
#define LAYOUT_OLDLINK_SIZE sizeof(struct layoutOldLink)

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

/* rsrv/server.h: struct channel_in_use. Its other members differ between releases: baseRelease.h. */
#define LAYOUT_CIU_EVENTQ  16
#define LAYOUT_CIU_SID     60
#define LAYOUT_CIU_CREATED 64 /* time_at_creation */

/* link.h */
#define LAYOUT_LINK_CONSTANT EBPFMON_LINKTYPE_CONSTANT
#define LAYOUT_LINK_PV EBPFMON_LINKTYPE_PV
#define LAYOUT_LINK_PN EBPFMON_LINKTYPE_PN
#define LAYOUT_LINK_DB EBPFMON_LINKTYPE_DB
#define LAYOUT_LINK_CA EBPFMON_LINKTYPE_CA
#define LAYOUT_LINK_INST 12 /* INST_IO: @text */
#define LAYOUT_LINK_LAST 15 /* VXI_IO */
#define LAYOUT_PVL_MSMODE 0x3
#define LAYOUT_PVL_PP     0x4
#define LAYOUT_PVL_CA     0x8
#define LAYOUT_PVL_CP     0x10
#define LAYOUT_PVL_CPP    0x20

/* The kernel part has the same offsets as numbers. */
_Static_assert(offsetof(struct layoutDbAddr, precord) == EBPFMON_DBADDR_PRECORD &&
               offsetof(struct layoutDbAddr, pfield) == EBPFMON_DBADDR_PFIELD &&
               offsetof(struct layoutDbAddr, pfldDes) == EBPFMON_DBADDR_PFLDDES &&
               offsetof(struct layoutDbAddr, no_elements) == EBPFMON_DBADDR_NELEMENTS &&
               offsetof(struct layoutDbAddr, field_type) == EBPFMON_DBADDR_FIELDTYPE &&
               sizeof(struct layoutDbAddr) == EBPFMON_DBADDR_SIZE, "dbAddr");
_Static_assert(offsetof(struct layoutScanElement, node.next) == EBPFMON_SCANELEMENT_NEXT &&
               offsetof(struct layoutScanElement, pscan_list) == EBPFMON_SCANELEMENT_LIST &&
               offsetof(struct layoutScanElement, precord) == EBPFMON_SCANELEMENT_PRECORD &&
               offsetof(struct layoutScanList, lock) == EBPFMON_SCANLIST_LOCK &&
               offsetof(struct layoutScanList, list.first) == EBPFMON_SCANLIST_FIRST, "scan lists");
_Static_assert(offsetof(struct layoutLockRecord, plockSet) == EBPFMON_LOCKRECORD_SET &&
               offsetof(struct layoutLockRecord, precord) == EBPFMON_LOCKRECORD_PRECORD, "lockRecord");
_Static_assert(offsetof(struct layoutDbChannel, addr) == EBPFMON_DBCHANNEL_ADDR, "dbChannel");
_Static_assert(LAYOUT_LINK_SIZE == 80 && LAYOUT_OLDLINK_SIZE == 56, "struct link");

#endif
