/* SPDX-License-Identifier: BSD-3-Clause */
/* The IPv4 addresses of a network namespace. Any thread. */
#ifndef EBPFMON_OWNADDRESSES_H
#define EBPFMON_OWNADDRESSES_H

#include <stdint.h>
#include <sys/types.h>

#define EBPFMON_OWN_ADDRESSES_MAX 256

/* Those of the namespace in which process "pid" is (0: we), in network byte order; at most EBPFMON_OWN_ADDRESSES_MAX.
 * Returns their number. Takes some 0.1 ms. */
unsigned ebpfMonOwnAddressesRead(pid_t pid, uint32_t *addresses);

#endif
