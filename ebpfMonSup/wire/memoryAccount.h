/* SPDX-License-Identifier: BSD-3-Clause */
/* What a wire may use, what it has used and counted, and whom it tells: the base of all that is here. */
#ifndef EBPFMON_MEMORYACCOUNT_H
#define EBPFMON_MEMORYACCOUNT_H

#include "wire/wireEvent.h"

typedef struct {
    ebpfMonWireLimits limits;
    ebpfMonWireStats  stats;
    ebpfMonWireSink   sink;
    void    *arg;
} ebpfMonMemoryAccount;

/* A NULL limit or zero member takes the default. */
void ebpfMonMemoryAccountStart(ebpfMonMemoryAccount *account, const ebpfMonWireLimits *limits, ebpfMonWireSink sink, void *arg);
/* Nobody is told from now on. */
void ebpfMonMemoryAccountMute(ebpfMonMemoryAccount *account);

/* Counted against limits.total; NULL at the limit. "size" of Free is what was asked for; a NULL p does no harm. */
void *ebpfMonMemoryAccountAlloc(ebpfMonMemoryAccount *account, size_t size);
void  ebpfMonMemoryAccountFree(ebpfMonMemoryAccount *account, void *p, size_t size);

/* To the sink, with "" for each text that is NULL. */
void  ebpfMonMemoryAccountEmit(ebpfMonMemoryAccount *account, ebpfMonWireEvent *event);

#endif
