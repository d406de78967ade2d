/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits, the memory, the counts and the sink of a wire. All modules of this room use it. For the thread of the
 * wire. */
#ifndef EBPFMON_MEMORYACCOUNT_H
#define EBPFMON_MEMORYACCOUNT_H

#include "wire/wireEvent.h"

typedef struct {
    ebpfMonWireLimits limits;
    ebpfMonWireStats  stats;
    uint64_t          lossAt; /* see ebpfMonWireSetLossAt (wire.h) */
    ebpfMonWireSink   sink;
    void    *arg;
} ebpfMonMemoryAccount;

/* Begins with all counts 0. If "limits" is NULL or a member 0, the default applies. */
void ebpfMonMemoryAccountStart(ebpfMonMemoryAccount *account, const ebpfMonWireLimits *limits, ebpfMonWireSink sink,
    void *arg);
/* The sink gets no more events. */
void ebpfMonMemoryAccountMute(ebpfMonMemoryAccount *account);

/* Memory that counts against limits.total. Alloc: NULL at the limit. Free: "size" must be that of Alloc; "p" may be
 * NULL. */
void *ebpfMonMemoryAccountAlloc(ebpfMonMemoryAccount *account, size_t size);
void  ebpfMonMemoryAccountFree(ebpfMonMemoryAccount *account, void *p, size_t size);

/* Gives the event to the sink. Texts that are NULL become "". */
void  ebpfMonMemoryAccountEmit(ebpfMonMemoryAccount *account, ebpfMonWireEvent *event);

#endif
