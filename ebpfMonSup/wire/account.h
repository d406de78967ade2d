/* SPDX-License-Identifier: BSD-3-Clause */
/* What a wire may use, what it has used and counted, and whom it tells: the base of all that is here. */
#ifndef EBPFMON_ACCOUNT_H
#define EBPFMON_ACCOUNT_H

#include "wire/wireEvent.h"

typedef struct {
    ebpfMonWireLimits limits;
    ebpfMonWireStats  stats;
    ebpfMonWireSink   sink;
    void    *arg;
} ebpfMonAccount;

/* A NULL limit or zero member takes the default. */
void ebpfMonAccountStart(ebpfMonAccount *account, const ebpfMonWireLimits *limits, ebpfMonWireSink sink, void *arg);
/* Nobody is told from now on. */
void ebpfMonAccountMute(ebpfMonAccount *account);

/* Counted against limits.total; NULL at the limit. "size" of Free is what was asked for; a NULL p does no harm. */
void *ebpfMonAccountAlloc(ebpfMonAccount *account, size_t size);
void  ebpfMonAccountFree(ebpfMonAccount *account, void *p, size_t size);

/* To the sink, with "" for each text that is NULL. */
void  ebpfMonAccountEmit(ebpfMonAccount *account, ebpfMonWireEvent *event);

#endif
