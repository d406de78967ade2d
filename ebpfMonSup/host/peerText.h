/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of the addresses of struct ebpfMonPeer. Any thread. */
#ifndef EBPFMON_PEERTEXT_H
#define EBPFMON_PEERTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonEvent.h"

#define EBPFMON_PEERTEXT_SIZE 46 /* INET6_ADDRSTRLEN */

/* "10.0.0.1" or "fd00::1". An address that is not known: "not known" (EBPFMON_NOT_KNOWN, model/put.h). */
void ebpfMonPeerTextAddress(uint32_t addr, const uint32_t addr6[4], char *buf, size_t size);

/* "10.0.0.1:5064" or "[fd00::1]:5075". "port": network byte order. */
void ebpfMonPeerTextEnd(uint32_t addr, const uint32_t addr6[4], uint16_t port, char *buf, size_t size);

#endif
