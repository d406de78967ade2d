/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes a thread of an IOC process a record, when it serves no client. Base names its threads by their job
 * (dbScan.c, callback.c, dbCa.c). What these functions need from the memory of the IOC is read
 * by ebpfMonTargetsGetReads. Call them under ebpfMonTargetsLock.
 *
 * CP links process records in the thread scanOnce, from Base 7.0.10 on in the thread dbCaLink. That one also makes the
 * puts of CA links to records of its own IOC. If a chain began with such a put, the caller gives no root.
 */
#ifndef EBPFMON_THREADJOB_H
#define EBPFMON_THREADJOB_H

#include <stddef.h>
#include <stdint.h>
#include "watch/target.h"

/* "scan .1 second", "I/O Intr", "Event", "callback in cbLow", "CP link from PV", "shell", "start-up", "thread NAME".
 * "comm": the name of the thread; "isMain": it is the first of its process; "root": address of the record that it began
 * with. */
void ebpfMonThreadJobDescribe(ebpfMonTarget *t, const char *comm, int isMain, uint64_t root, char *buf, size_t size);

/* SCAN of the record at this address, as its menu calls it. Empty: not known. */
void ebpfMonThreadJobReadScan(ebpfMonTarget *t, uint64_t precord, char *buf, size_t size);

#endif
