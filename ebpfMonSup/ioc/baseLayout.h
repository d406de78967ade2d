/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Structs of Base in the memory of another process, so pointers are numbers. Here is what all releases share
 * (layoutAll.h, with which the members are compared); what differs is in baseRelease.h. Members that came later, or
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

#endif
