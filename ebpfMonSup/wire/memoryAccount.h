/* SPDX-License-Identifier: BSD-3-Clause */
/* What a wire may use, what it has used, its counts, and the sink of its events. All modules of this room use it. */
#ifndef EBPFMON_MEMORYACCOUNT_H
#define EBPFMON_MEMORYACCOUNT_H

#include "wire/wireEvent.h"

typedef struct {
    ebpfMonWireLimits limits;
    ebpfMonWireStats  stats;
    uint64_t          lossAt; /* wire.h, ebpfMonWireSetLossAt */
    ebpfMonWireSink   sink;
    void    *arg;
} ebpfMonMemoryAccount;

/* A NULL limit or zero member takes the default. */
void ebpfMonMemoryAccountStart(ebpfMonMemoryAccount *account, const ebpfMonWireLimits *limits, ebpfMonWireSink sink,
    void *arg);
/* From now on the sink gets no events. */
void ebpfMonMemoryAccountMute(ebpfMonMemoryAccount *account);

/* Counted against limits.total; NULL at the limit. "size" of Free is that of Alloc; a NULL p does no harm. */
void *ebpfMonMemoryAccountAlloc(ebpfMonMemoryAccount *account, size_t size);
void  ebpfMonMemoryAccountFree(ebpfMonMemoryAccount *account, void *p, size_t size);

/* To the sink, with "" for each text that is NULL. */
void  ebpfMonMemoryAccountEmit(ebpfMonMemoryAccount *account, ebpfMonWireEvent *event);

#endif
