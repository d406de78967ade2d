/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts that search and answer, and how many entries the tables of search/search.h have. */
#ifndef EBPFMON_SEARCHHOST_H
#define EBPFMON_SEARCHHOST_H

#include <stdint.h>

#define EBPFMON_SEARCH_NAMES   8192
#define EBPFMON_SEARCH_CLIENTS 1024
#define EBPFMON_SEARCH_SERVERS 1024
#define EBPFMON_SEARCH_FORGET  600000000000u /* ns without a search or beacon, after which an entry is removed */

typedef enum { ebpfMonSearchCa, ebpfMonSearchPva } ebpfMonSearchProtocol;

typedef struct {
    uint32_t addr;
    uint16_t port;
} ebpfMonSearchHost;

#endif
