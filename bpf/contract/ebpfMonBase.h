/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * Offsets of members in public structs of EPICS Base, on a 64-bit machine, and numbers of Base. The kernel part reads a
 * watched IOC by them. The room ioc/ describes the same structs in full and asserts that both agree. Offsets that are
 * private to Base and differ between releases are in struct ebpfMonTargetConf.
 */
#ifndef EBPFMON_BASE_H
#define EBPFMON_BASE_H

/* dbAddr.h: DBADDR */
#define EBPFMON_DBADDR_PRECORD   0
#define EBPFMON_DBADDR_PFIELD    8
#define EBPFMON_DBADDR_PFLDDES   16
#define EBPFMON_DBADDR_NELEMENTS 24
#define EBPFMON_DBADDR_FIELDTYPE 32 /* short field_type, field_size, special, dbr_field_type */
#define EBPFMON_DBADDR_SPECIAL   36
#define EBPFMON_DBADDR_SIZE      40

/* dbChannel.h: the offset of the DBADDR in a dbChannel, since 3.15 */
#define EBPFMON_DBCHANNEL_ADDR 8

/* dbScan.c: scan_list, scan_element. They are private to Base; ioc/scanLists.c checks these offsets in each IOC. */
#define EBPFMON_SCANLIST_LOCK       0
#define EBPFMON_SCANLIST_FIRST      8
#define EBPFMON_SCANELEMENT_NEXT    0
#define EBPFMON_SCANELEMENT_LIST    16 /* NULL: the record is in no list */
#define EBPFMON_SCANELEMENT_PRECORD 24

/* dbLockPvt.h, before 3.16 dbLock.c: lockRecord. ioc/lockSets.c checks these offsets in each IOC. */
#define EBPFMON_LOCKRECORD_SET     16
#define EBPFMON_LOCKRECORD_PRECORD 24

/* dbLockPvt.h: struct dbLocker, unchanged since it came with 3.16.0.1 */
#define EBPFMON_LOCKER_MAXREFS 32
#define EBPFMON_LOCKER_REFS    40
#define EBPFMON_LOCKREF_SIZE   16
#define EBPFMON_MANY_MAX       256 /* records of one dbLocker at which we look */

/* link.h: types of links that have a struct pv_link */
#define EBPFMON_LINKTYPE_CONSTANT 0
#define EBPFMON_LINKTYPE_PV       1
#define EBPFMON_LINKTYPE_PN       9
#define EBPFMON_LINKTYPE_DB       10
#define EBPFMON_LINKTYPE_CA       11

/* dbFldTypes.h of EPICS 7: DBF_ULONG, DBF_MENU, DBF_DEVICE, DBF_INLINK … DBF_FWDLINK. In older releases the types
 * after DBF_ULONG have smaller numbers (ebpfMonTargetConf.dbfGap). */
#define EBPFMON_DBF_ULONG   6
#define EBPFMON_DBF_MENU    12
#define EBPFMON_DBF_INLINK  14
#define EBPFMON_DBF_FWDLINK 16

#define EBPFMON_SPC_NOMOD  1  /* special.h */
#define EBPFMON_SPC_DBADDR 2  /* special.h: the record tells where the elements are */
#define EBPFMON_SPC_SCAN   3  /* special.h: of the fields SCAN, EVNT, PHAS and PRIO */
#define EBPFMON_SPC_ATTRIBUTE 7 /* special.h: of attributes of record types, which are no fields */
#define EBPFMON_SPC_RESET  101 /* special.h: also of SDEL of histograms */
#define EBPFMON_AS_WRITE   2  /* asLib.h: asNOACCESS, asREAD, asWRITE */
#define EBPFMON_MAX_STRING 40 /* epicsTypes.h: MAX_STRING_SIZE */

/* callback.h: epicsCallback.priority */
#define EBPFMON_CALLBACK_PRIORITY 8

/* caProto.h */
#define EBPFMON_CA_WRITE        4
#define EBPFMON_CA_WRITE_NOTIFY 19

#endif
