/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables in which the kernel part looks up addresses of an IOC: the slot of a record, and where an array field has
 * its elements. Only the follower uses this module.
 */
#ifndef EBPFMON_RECORDINDEX_H
#define EBPFMON_RECORDINDEX_H

#include "probe/kernelLoad.h"
#include "watch/target.h"

/* The mapped tables, and the functions that change the tables with keys: those of probe/kernelTables.h and
 * kernelTables.h, or a test's own. */
typedef struct {
    const ebpfMonTables *tables; /* must outlive the record tables */
    int  isRealTime;             /* nonzero: a real-time kernel */
    int  (*setRecordIndex)(uint32_t tgid, const uint64_t *precord, uint32_t count, uint32_t first);
    void (*removeRecordIndex)(uint32_t tgid, const uint64_t *precord, uint32_t count);
    int  (*setArray)(uint32_t tgid, uint64_t pfldDes, const struct ebpfMonArrayConf *conf);
    void (*removeArray)(uint32_t tgid, uint64_t pfldDes);
    uint32_t (*takeRoot)(uint32_t slot);
    void (*reserveRoots)(void);
    void (*removeRoots)(uint32_t first, uint32_t count);
    void (*removeAsyncs)(uint32_t first, uint32_t count);
    int  (*setList)(uint32_t tgid, uint64_t mutex, const struct ebpfMonList *list);
    void (*removeLists)(uint32_t tgid);
    int  (*beginPassNotes)(uint32_t tgid);
    int  (*getPassNotes)(uint32_t tgid, struct ebpfMonPassNotes *notes);
} ebpfMonRecordTablesKernel;

/* Adds all records of the IOC: record i gets slot "slot" + i. 0, or -1: there is no room, or no memory. */
int  ebpfMonRecordIndexAdd(const ebpfMonRecordTablesKernel *kernel, const ebpfMonTarget *t, uint32_t slot);
void ebpfMonRecordIndexRemove(const ebpfMonRecordTablesKernel *kernel, const ebpfMonTarget *t);

/* Adds its array fields, or removes them. */
void ebpfMonRecordIndexSetArrays(const ebpfMonRecordTablesKernel *kernel, const ebpfMonTarget *t, int on);

#endif
