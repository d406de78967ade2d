/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>

#include "host/peerText.h"

void ebpfMonPeerTextAddress(uint32_t addr, const uint32_t addr6[4], char *buf, size_t size)
{
    char text[EBPFMON_PEERTEXT_SIZE] = "not known";

    if (ebpfMonIsIPv6(addr6))
        inet_ntop(AF_INET6, addr6, text, sizeof(text));
    else if (*(const uint8_t *)&addr) /* nobody is in 0/8 */
        inet_ntop(AF_INET, &addr, text, sizeof(text));
    snprintf(buf, size, "%s", text);
}

void ebpfMonPeerTextEnd(uint32_t addr, const uint32_t addr6[4], uint16_t port, char *buf, size_t size)
{
    char text[EBPFMON_PEERTEXT_SIZE];

    ebpfMonPeerTextAddress(addr, addr6, text, sizeof(text));
    snprintf(buf, size, ebpfMonIsIPv6(addr6) ? "[%s]:%u" : "%s:%u", text, ntohs(port));
}
