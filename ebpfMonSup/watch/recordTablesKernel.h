/* SPDX-License-Identifier: BSD-3-Clause */
/* What the record tables need of the kernel part. Only the follower uses it. */
#ifndef EBPFMON_RECORDTABLESKERNEL_H
#define EBPFMON_RECORDTABLESKERNEL_H

#include "probe/kernelLoad.h"
#include "watch/target.h"

/* The mapped tables, and the functions that change the tables with keys: those of probe/kernelTables.h, or a test's
 * own. */
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

#endif
