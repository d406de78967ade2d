/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which record a user of a port works for, by asynUser.userPvt and the records' DPVT, both private to device support. That of
 * asyn itself has DPVT = userPvt, and keeps the record at its begin, as the asyn record does. StreamDevice has a pointer
 * in its AsynDriverInterface to a part of the object that DPVT points to. Nothing but such a match is believed. The
 * thread of devices.h alone.
 */
#ifndef EBPFMON_DEVICERECORDS_H
#define EBPFMON_DEVICERECORDS_H

#include <stdint.h>
#include <sys/types.h>

#include "ioc/catalogue.h"

typedef struct ebpfMonDeviceRecords ebpfMonDeviceRecords;

/* Reads DPVT of all records. Holds the catalogue. NULL without memory. */
ebpfMonDeviceRecords *ebpfMonDeviceRecordsNew(pid_t pid, ebpfMonCatalogue *cat);
void ebpfMonDeviceRecordsFree(ebpfMonDeviceRecords *records);
ebpfMonCatalogue *ebpfMonDeviceRecordsGetCatalogue(const ebpfMonDeviceRecords *records);

/* Index of the record; -1: none, or more than one. */
long ebpfMonDeviceRecordsFind(const ebpfMonDeviceRecords *records, uint64_t pvt);

#endif
