/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the record for which a user of a port works. asynUser.userPvt and the DPVT of a record both point to private
 * structs of device support. Three cases are known:
 * - asyn's own device support: DPVT and userPvt are equal.
 * - asyn's own device support and the asyn record: the struct begins with the address of the record.
 * - StreamDevice: its AsynDriverInterface points to a part of the object to which DPVT points.
 *
 * In all other cases no record is shown. Only the thread of devices.c uses this module.
 */
#ifndef EBPFMON_DEVICERECORDS_H
#define EBPFMON_DEVICERECORDS_H

#include <stdint.h>
#include <sys/types.h>

#include "ioc/catalogue.h"

typedef struct ebpfMonDeviceRecords ebpfMonDeviceRecords;

/* Reads the DPVT of all records, and holds a reference of the catalogue. NULL without memory. */
ebpfMonDeviceRecords *ebpfMonDeviceRecordsNew(pid_t pid, ebpfMonCatalogue *cat);
void ebpfMonDeviceRecordsFree(ebpfMonDeviceRecords *records);
ebpfMonCatalogue *ebpfMonDeviceRecordsGetCatalogue(const ebpfMonDeviceRecords *records);

/* "pvt": asynUser.userPvt. Returns the index of the record in the catalogue; -1: no record, or more than one. */
long ebpfMonDeviceRecordsFind(const ebpfMonDeviceRecords *records, uint64_t pvt);

#endif
