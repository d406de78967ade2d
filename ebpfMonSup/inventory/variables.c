/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of an IOC for its inventory; see iocInventory.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"
#include "host/serverSockets.h"
#include "inventory/iocInventory.h"
#include "ioc/environment.h"

#define VALUE_SIZE 1024
#define SOCKETS_MAX 256
#define CA_PORT    5064
#define PVA_PORT   5075

static void giveVariable(const ebpfMonInventorySink *sink, const char *name, const char *value)
{
    char clean[VALUE_SIZE];

    if (!value || !value[0])
        return;
    ebpfMonTextCopy(clean, sizeof(clean), value);
    sink->variable(sink->arg, name, clean);
}

/* When the process was started, from its age: the clock may have been set since. */
static void giveStart(const ebpfMonInventoryIoc *ioc, const ebpfMonInventorySink *sink)
{
    struct timespec sinceBoot;
    char text[32];
    struct tm utc;
    time_t began;

    if (clock_gettime(CLOCK_BOOTTIME, &sinceBoot))
        return;
    began = time(NULL) - (sinceBoot.tv_sec - (time_t)(ioc->start / (uint64_t)sysconf(_SC_CLK_TCK)));
    if (gmtime_r(&began, &utc) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc))
        giveVariable(sink, "IOC_STARTED", text);
}

typedef struct {
    ebpfMonServerSocket *list;
    unsigned count;
} sockets;

static int isListening(const sockets *s, unsigned port)
{
    for (unsigned i = 0; i < s->count; i++)
        if (ntohs(s->list[i].port) == port)
            return 1;
    return 0;
}

/* caservertask.c has room for four digits (epicsSnprintf of sizeof(buf) - 1): of 50641 there is 5064. Then the port at which
 * the process listens and that begins so, if there is one such. 0: none. */
static unsigned findWhole(const sockets *s, unsigned cut)
{
    unsigned found = 0;

    for (unsigned i = 0; i < s->count; i++) {
        unsigned port = ntohs(s->list[i].port);

        if (port / 10 != cut || port == found)
            continue;
        if (found)
            return 0;
        found = port;
    }
    return found;
}

/* The port that the IOC was told, or the usual one. */
static unsigned findConfigured(const ebpfMonEnvironment *env, const char *const names[2], unsigned usual)
{
    unsigned port = usual;

    for (int i = 1; i >= 0; i--) {
        const char *set = ebpfMonEnvironmentGet(env, names[i]);

        if (set && set[0])
            sscanf(set, "%u", &port);
    }
    return port;
}

/* Base sets RSRV_SERVER_PORT and PVAS_SERVER_PORT (caservertask.c, PVAServerRegister.cpp). An older one does not: then the
 * port that it was told, if it listens there. A port at which nobody listens is not given. */
static void givePort(const sockets *s, const ebpfMonEnvironment *env, const char *name, const char *const configured[2],
                     unsigned usual, const ebpfMonInventorySink *sink)
{
    const char *text = ebpfMonEnvironmentGet(env, name);
    unsigned port = 0;
    char made[16];

    if (!text)
        port = findConfigured(env, configured, usual);
    else if (sscanf(text, "%u", &port) == 1 && !isListening(s, port))
        port = findWhole(s, port);
    if (!port || !isListening(s, port))
        return;
    snprintf(made, sizeof(made), "%u", port);
    giveVariable(sink, name, made);
}

static int isMade(const char *name)
{
    static const char *const made[] = {"EPICS_VERSION", "IOCNAME", "HOSTNAME", "IOC_STARTED", "RSRV_SERVER_PORT",
                                       "PVAS_SERVER_PORT", NULL};

    for (const char *const *m = made; *m; m++)
        if (strcmp(*m, name) == 0)
            return 1;
    return 0;
}

static void giveMore(const ebpfMonEnvironment *env, const char *more, const ebpfMonInventorySink *sink)
{
    char name[64];
    int length;

    for (; sscanf(more, " %63s%n", name, &length) == 1; more += length)
        if (!isMade(name))
            giveVariable(sink, name, ebpfMonEnvironmentGet(env, name));
}

void ebpfMonInventoryReadVariables(const ebpfMonInventoryIoc *ioc, const char *const *names, const char *more,
                                   const ebpfMonInventorySink *sink)
{
    static const char *const ca[] = {"EPICS_CAS_SERVER_PORT", "EPICS_CA_SERVER_PORT"};
    static const char *const pva[] = {"EPICS_PVAS_SERVER_PORT", "EPICS_PVA_SERVER_PORT"};
    ebpfMonMem *mem = ebpfMonMemNew(ioc->pid);
    ebpfMonEnvironment env = {0};
    sockets open = {0};
    const char *host, *name;
    char own[256] = "";

    if (mem)
        ebpfMonEnvironmentRead(ioc->pid, mem, &env);
    gethostname(own, sizeof(own) - 1);
    host = ebpfMonEnvironmentGet(&env, "HOSTNAME");
    name = ebpfMonEnvironmentGet(&env, "IOCNAME");
    giveVariable(sink, "EPICS_VERSION", ioc->version);
    giveVariable(sink, "IOCNAME", name && name[0] ? name : ioc->name);
    giveVariable(sink, "HOSTNAME", host && host[0] ? host : own);
    giveStart(ioc, sink);
    open.count = (unsigned)ebpfMonServerSocketsRead(&ioc->pid, 1, SOCKETS_MAX, NULL, &open.list);
    givePort(&open, &env, "RSRV_SERVER_PORT", ca, CA_PORT, sink);
    givePort(&open, &env, "PVAS_SERVER_PORT", pva, PVA_PORT, sink);
    free(open.list);
    for (; *names; names++)
        if (!isMade(*names))
            giveVariable(sink, *names, ebpfMonEnvironmentGet(&env, *names));
    giveMore(&env, more, sink);
    ebpfMonEnvironmentFree(&env);
    ebpfMonMemFree(mem);
}
