/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "host/procInfo.h"
#include "put/serverPorts.h"

#define IOCS_MAX 256 /* beyond that the one that was asked about longest ago makes room */
#define RETRY_NS EBPFMON_SECOND_NS

typedef struct {
    uint32_t iocId;
    uint64_t readAt, usedAt;             /* monotonic ns; readAt 0: never */
    uint8_t  bits[EBPFMON_PORTS_BYTES];  /* by port in host byte order */
} iocPorts;

struct ebpfMonServerPorts {
    iocPorts *ioc[IOCS_MAX];
    unsigned  count;
};

ebpfMonServerPorts *ebpfMonServerPortsNew(void)
{
    return calloc(1, sizeof(ebpfMonServerPorts));
}

void ebpfMonServerPortsFree(ebpfMonServerPorts *ports)
{
    for (unsigned i = 0; ports && i < ports->count; i++)
        free(ports->ioc[i]);
    free(ports);
}

/* The entry of an IOC, made if need be. NULL without memory. */
static iocPorts *getIoc(ebpfMonServerPorts *ports, uint32_t iocId)
{
    iocPorts *oldest = NULL;

    for (unsigned i = 0; i < ports->count; i++) {
        if (ports->ioc[i]->iocId == iocId)
            return ports->ioc[i];
        if (!oldest || ports->ioc[i]->usedAt < oldest->usedAt)
            oldest = ports->ioc[i];
    }
    if (ports->count < IOCS_MAX) {
        oldest = malloc(sizeof(*oldest));
        if (!oldest)
            return NULL;
        ports->ioc[ports->count++] = oldest;
    }
    memset(oldest, 0, sizeof(*oldest));
    oldest->iocId = iocId;
    return oldest;
}

int ebpfMonServerPortsHas(ebpfMonServerPorts *ports, uint32_t iocId, pid_t pid, uint16_t port, uint64_t now)
{
    iocPorts *ioc = getIoc(ports, iocId);
    unsigned number = ntohs(port), bit = 1u << (number % 8);

    if (!ioc)
        return 0;
    ioc->usedAt = now;
    if (!(ioc->bits[number / 8] & bit) && (!ioc->readAt || now > ioc->readAt + RETRY_NS)) {
        ioc->readAt = now;
        ebpfMonProcListening(pid, ioc->bits);
    }
    return !!(ioc->bits[number / 8] & bit);
}
