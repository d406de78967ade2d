/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's routing table names them (/proc/PID/net/fib_trie: the address, and in the next line "/32 host LOCAL";
 * fib_trie_seq_show, net/ipv4/fib_trie.c). */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "host/ownAddresses.h"

static void addAddress(uint32_t addr, uint32_t *addresses, unsigned *count)
{
    for (unsigned i = 0; i < *count; i++)
        if (addresses[i] == addr)
            return;
    if (*count < EBPFMON_OWN_ADDRESSES_MAX)
        addresses[(*count)++] = addr;
}

unsigned ebpfMonOwnAddressesRead(pid_t pid, uint32_t *addresses)
{
    char path[40] = "/proc/thread-self/net/fib_trie", line[128], text[INET_ADDRSTRLEN] = "";
    struct in_addr in;
    unsigned count = 0;
    FILE *f;

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/net/fib_trie", (int)pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, "|-- ");

        if (at)
            sscanf(at, "|-- %15[0-9.]", text);
        else if (strstr(line, "/32 host LOCAL") && inet_pton(AF_INET, text, &in) == 1)
            addAddress(in.s_addr, addresses, &count);
    }
    if (f)
        fclose(f);
    return count;
}
