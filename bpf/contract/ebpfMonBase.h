/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * Numbers of EPICS Base, on a 64-bit machine. Those that all releases share are in layoutAll.h, and here each has a
 * name: EBPFMON_DbAddr_precord, EBPFMON_SPC_SCAN. The kernel part reads a watched IOC by them. Numbers that differ
 * between releases are in layoutRELEASE.h. The user half chooses one (ioc/baseLayout.h), and the kernel part gets it
 * in struct ebpfMonTargetConf.
 */
#ifndef EBPFMON_BASE_H
#define EBPFMON_BASE_H

enum {
#define ALL(type, member, number) EBPFMON_##type##_##member = number,
#define NUMBER(name, number)      EBPFMON_##name = number,
#include "layoutAll.h"
#undef ALL
#undef NUMBER
};

#define EBPFMON_RECORD_MAX 65536 /* bytes of a record: dbFldDes.offset has 16 bits */
#define EBPFMON_MANY_MAX 256 /* records of one dbLocker at which we look */

/* dbFldTypes.h of EPICS 7: DBF_ULONG, DBF_MENU, DBF_DEVICE, DBF_INLINK … DBF_FWDLINK. In older releases the types
 * after DBF_ULONG have smaller numbers (ebpfMonTargetConf.dbfGap). */
#define EBPFMON_DBF_ULONG   6
#define EBPFMON_DBF_MENU    12
#define EBPFMON_DBF_INLINK  14
#define EBPFMON_DBF_FWDLINK 16

#endif
