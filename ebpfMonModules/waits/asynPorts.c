/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pasynBase → asynPortList → port → queueList → userPvt (asynManager.c). Where the queues lie in a port depends on the
 * release of asyn; so each word of the port is tried, and a userPvt leads back to its port. A thread that uses a port
 * and waits meanwhile (SyncIO of asyn) has a request of queueLockPort in the queue, and waits for the event in its
 * queueLockPortPvt.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shared/functionSite.h"
#include "common/array.h"
#include "ioc/baseLayout.h"
#include "waits/asynPorts.h"

#define PORT_WORDS    64 /* of struct port: up to the queues and what follows, in all releases of asyn 4 */
#define REQUESTS_MAX  512
#define PVT_WORDS     16 /* of a private struct of device support, see device/deviceRows.c */
#define PART_MAX      24

enum { portName = 2, portLock = 4 };                                  /* words of struct port */
enum { userTimeout = 6, userPort = 9, userQueued = 100, userPvt = 16, userSize = 136 }; /* words and bytes of userPvt */
enum { userPublic = 104 };                                            /* the asynUser in it: bytes */
enum { eventCond = 40, eventSize = 88 }; /* epicsEventOSD: pthread_mutex_t, pthread_cond_t */

uint64_t ebpfMonAsynPortsFind(pid_t pid)
{
    static const char *const name = "pasynBase"; /* static, so the file is that of an exported function */
    ebpfMonVariable found = { .address = 0 };

    return ebpfMonVariablesFind(pid, "asynReport", &name, 1, &found) ? found.address : 0;
}

void ebpfMonAsynPortsClear(ebpfMonAsynPorts *a)
{
    free(a->request);
    *a = (ebpfMonAsynPorts){ .ports = 0 };
}

/* The requests of a queue, from this one on. It may be none. */
static void addRequests(ebpfMonAsynPorts *a, ebpfMonMem *mem, unsigned port, uint64_t at)
{
    uint64_t word[userSize / 8];
    double timeout;
    int32_t isQueued;

    for (; at && at % sizeof(uint64_t) == 0 && a->requests < REQUESTS_MAX; at = word[0]) {
        if (ebpfMonMemRead(mem, at, word, sizeof(word)) || word[userPort] != a->port[port].at)
            return;
        memcpy(&isQueued, (const char *)word + userQueued, sizeof(isQueued));
        for (size_t i = 0; i < a->requests; i++)
            if (a->request[i].at == at)
                return;
        if (isQueued != 1 || ebpfMonArrayGrow(&a->request, &a->room, a->requests + 1, 16, sizeof(*a->request)))
            return;
        memcpy(&timeout, &word[userTimeout], sizeof(timeout));
        a->request[a->requests++] = (ebpfMonAsynRequest){ at, port, word[userPvt], timeout > 0 };
    }
}

void ebpfMonAsynPortsRead(ebpfMonAsynPorts *a, ebpfMonMem *mem, uint64_t variable)
{
    uint64_t at, word[PORT_WORDS];

    a->ports = 0;
    a->requests = 0;
    ebpfMonMemFlush(mem);
    at = ebpfMonMemPtr(mem, variable);     /* pasynBase */
    at = at ? ebpfMonMemPtr(mem, at) : 0;  /* its first member is the list of ports */
    for (; at && a->ports < EBPFMON_ASYN_PORTS && !ebpfMonMemRead(mem, at, word, sizeof(word)); at = word[0]) {
        ebpfMonAsynPort *p = &a->port[a->ports];
        int isName;

        *p = (ebpfMonAsynPort){ .at = at, .lock = word[portLock] };
        isName = ebpfMonMemStr(mem, word[portName], p->name, sizeof(p->name)) == 0 && p->name[0];
        for (const char *c = p->name; *c; c++)
            isName &= isprint((unsigned char)*c) != 0;
        if (!isName)
            return;
        a->ports++;
        for (unsigned i = portLock + 1; i < PORT_WORDS; i++)
            if (word[i] != at)
                addRequests(a, mem, a->ports - 1, word[i]);
    }
}

const ebpfMonAsynRequest *ebpfMonAsynPortsFindThread(const ebpfMonAsynPorts *a, ebpfMonMem *mem, uint64_t futex)
{
    for (size_t i = 0; i < a->requests; i++) {
        uint64_t event = ebpfMonMemPtr(mem, a->request[i].pvt); /* queueLockPortPvt begins with it */

        if (event && futex - event >= eventCond && futex - event < eventSize)
            return &a->request[i];
    }
    return NULL;
}

/* The port of an asynUser to which one of these words points; -1: none does. */
static int findUserPort(const ebpfMonAsynPorts *a, ebpfMonMem *mem, const uint64_t word[PVT_WORDS])
{
    for (unsigned k = 0; k < PVT_WORDS; k++) {
        uint64_t port = word[k] && word[k] % 8 == 0 ? ebpfMonMemPtr(mem, word[k] - userPublic + userPort * 8) : 0;

        for (unsigned i = 0; port && i < a->ports; i++)
            if (a->port[i].at == port)
                return (int)i;
    }
    return -1;
}

static int isPartOf(uint64_t at, uint64_t object)
{
    return at >= object && at - object <= PART_MAX;
}

/* The port of an object to which one of these words points, and that points back: the AsynDriverInterface of
 * StreamDevice (businterface, client). -1: there is none. */
static int findInterfacePort(const ebpfMonAsynPorts *a, ebpfMonMem *mem, const uint64_t word[PVT_WORDS], uint64_t dpvt)
{
    uint64_t inner[PVT_WORDS];

    for (unsigned k = 0; k < PVT_WORDS; k++) {
        int isBack = 0, port;

        if (!word[k] || word[k] % 8 || ebpfMonMemRead(mem, word[k], inner, sizeof(inner)))
            continue;
        for (unsigned i = 0; i < PVT_WORDS; i++)
            isBack |= isPartOf(inner[i], dpvt);
        if (isBack && (port = findUserPort(a, mem, inner)) >= 0)
            return port;
    }
    return -1;
}

int ebpfMonAsynPortsFindRecord(const ebpfMonAsynPorts *a, ebpfMonMem *mem, uint64_t record, uint64_t dpvt,
                               int *isQueued)
{
    uint64_t word[PVT_WORDS];
    int port;

    *isQueued = 1;
    for (size_t i = 0; dpvt && i < a->requests; i++) { /* the three ways of device/deviceRows.c */
        const ebpfMonAsynRequest *r = &a->request[i];

        if (r->pvt == dpvt)
            return (int)r->port;
        if (ebpfMonMemRead(mem, r->pvt, word, sizeof(word)))
            continue;
        for (unsigned k = 0; k < PVT_WORDS; k++)
            if ((!k && word[k] == record) || isPartOf(word[k], dpvt))
                return (int)r->port;
    }
    *isQueued = 0;
    if (!dpvt || ebpfMonMemRead(mem, dpvt, word, sizeof(word)))
        return -1;
    port = findUserPort(a, mem, word); /* device support of asyn keeps its asynUser there */
    return port >= 0 ? port : findInterfacePort(a, mem, word, dpvt);
}
