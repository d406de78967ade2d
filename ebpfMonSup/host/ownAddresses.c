/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4: the kernel's routing table names them (/proc/PID/net/fib_trie: the address, and in the next line "/32 host
 * LOCAL"; fib_trie_seq_show, net/ipv4/fib_trie.c). IPv6: a line each of /proc/PID/net/if_inet6 begins with 32 digits
 * (if6_seq_show, net/ipv6/addrconf.c). */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "host/ownAddresses.h"

static FILE *openTable(pid_t pid, const char *name)
{
    char path[48];

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
    else
        snprintf(path, sizeof(path), "/proc/thread-self/net/%s", name);
    return fopen(path, "re");
}

int ebpfMonOwnAddressesHave(const ebpfMonOwnAddresses *own, uint32_t addr, const uint32_t addr6[4])
{
    for (unsigned i = 0; i < own->count; i++)
        if (ebpfMonIsSameAddress(own->addr[i], own->addr6[i], addr, addr6))
            return 1;
    return 0;
}

static void addAddress(ebpfMonOwnAddresses *own, uint32_t addr, const uint32_t addr6[4])
{
    if (own->count == EBPFMON_OWN_ADDRESSES_MAX || ebpfMonOwnAddressesHave(own, addr, addr6))
        return;
    own->addr[own->count] = addr;
    memcpy(own->addr6[own->count++], addr6, sizeof(own->addr6[0]));
}

static void readIPv4(pid_t pid, ebpfMonOwnAddresses *own)
{
    static const uint32_t none[4];
    char line[128], text[INET_ADDRSTRLEN] = "";
    FILE *f = openTable(pid, "fib_trie");
    struct in_addr in;

    while (f && fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, "|-- ");

        if (at)
            sscanf(at, "|-- %15[0-9.]", text);
        else if (strstr(line, "/32 host LOCAL") && inet_pton(AF_INET, text, &in) == 1)
            addAddress(own, in.s_addr, none);
    }
    if (f)
        fclose(f);
}

static void readIPv6(pid_t pid, ebpfMonOwnAddresses *own)
{
    FILE *f = openTable(pid, "if_inet6");
    unsigned word[4];
    char line[128];

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%8x%8x%8x%8x", &word[0], &word[1], &word[2], &word[3]) == 4) {
            for (unsigned i = 0; i < 4; i++)
                word[i] = htonl(word[i]);
            addAddress(own, ebpfMonShortAddress(word), word);
        }
    if (f)
        fclose(f);
}

void ebpfMonOwnAddressesRead(pid_t pid, ebpfMonOwnAddresses *own)
{
    own->count = 0;
    readIPv4(pid, own);
    readIPv6(pid, own);
}
