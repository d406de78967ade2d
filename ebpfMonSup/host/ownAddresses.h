/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a network namespace. Any thread. */
#ifndef EBPFMON_OWNADDRESSES_H
#define EBPFMON_OWNADDRESSES_H

#include <sys/types.h>

#include "ebpfMonEvent.h"

#define EBPFMON_OWN_ADDRESSES_MAX 256

typedef struct {
    unsigned count;
    uint32_t addr[EBPFMON_OWN_ADDRESSES_MAX]; /* as in struct ebpfMonPeer, as the next one */
    uint32_t addr6[EBPFMON_OWN_ADDRESSES_MAX][4];
} ebpfMonOwnAddresses;

/* Those of the namespace in which process "pid" is (0: we). Takes some 0.1 ms. */
void ebpfMonOwnAddressesRead(pid_t pid, ebpfMonOwnAddresses *own);

int ebpfMonOwnAddressesHave(const ebpfMonOwnAddresses *own, uint32_t addr, const uint32_t addr6[4]);

#endif
