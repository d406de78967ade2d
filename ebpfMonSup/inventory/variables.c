/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the environment of an IOC for its inventory (iocInventory.h). */
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

static void passVariable(const ebpfMonInventorySink *sink, const char *name, const char *value)
{
    char clean[VALUE_SIZE];

    if (!value || !value[0])
        return;
    ebpfMonTextCopy(clean, sizeof(clean), value);
    sink->variable(sink->arg, name, clean);
}

/* "number" 0: passes nothing. */
static void passNumber(const ebpfMonInventorySink *sink, const char *name, unsigned number)
{
    char made[16];

    snprintf(made, sizeof(made), "%u", number);
    passVariable(sink, name, number ? made : NULL);
}

/* Passes the time at which the process started. It is computed from the age of the process, because the clock may
 * have been set since. Both clocks are read with their nanoseconds, so that it is the same second each time. */
static void passStart(const ebpfMonInventoryIoc *ioc, const ebpfMonInventorySink *sink)
{
    struct timespec sinceBoot, now;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    char text[32];
    struct tm utc;
    time_t began;

    if (clock_gettime(CLOCK_BOOTTIME, &sinceBoot) || clock_gettime(CLOCK_REALTIME, &now))
        return;
    began = (time_t)((double)(now.tv_sec - sinceBoot.tv_sec) + 1e-9 * (double)(now.tv_nsec - sinceBoot.tv_nsec) +
                     (double)ioc->start / ticks);
    if (gmtime_r(&began, &utc) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc))
        passVariable(sink, "IOC_STARTED", text);
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

/* Completes a port number if its last digit is missing. rsrv_init (caservertask.c) up to Base 7.0.8.1 (mended by commit
 * 772c10d90) cuts RSRV_SERVER_PORT to four digits (epicsSnprintf with sizeof(buf) - 1): 50641 becomes 5064. Returns
 * the port that begins with these digits and at which the process listens. 0: there is none, or there are several. */
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

/* The port that the environment of the IOC sets, or the usual one. The first name has precedence. */
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

/* Passes the port of a server. Base sets RSRV_SERVER_PORT and PVAS_SERVER_PORT in its environment (caservertask.c,
 * PVAServerRegister.cpp). An older Base does not; then it is the configured port. Nothing is passed if the process
 * does not listen at this port. */
static void passPort(const sockets *s, const ebpfMonEnvironment *env, const char *name, const char *const configured[2],
                     unsigned usual, const ebpfMonInventorySink *sink)
{
    const char *text = ebpfMonEnvironmentGet(env, name);
    unsigned port = 0;

    if (!text)
        port = findConfigured(env, configured, usual);
    else if (sscanf(text, "%u", &port) == 1 && !isListening(s, port))
        port = findWhole(s, port);
    passNumber(sink, name, isListening(s, port) ? port : 0);
}

static void passPorts(const ebpfMonInventoryIoc *ioc, const ebpfMonEnvironment *env, const ebpfMonInventorySink *sink)
{
    static const char *const ca[] = {"EPICS_CAS_SERVER_PORT", "EPICS_CA_SERVER_PORT"};
    static const char *const pva[] = {"EPICS_PVAS_SERVER_PORT", "EPICS_PVA_SERVER_PORT"};
    sockets open = {0};

    if (ioc->packetServers) { /* packets have proven its ports */
        passNumber(sink, "RSRV_SERVER_PORT", ioc->caPort);
        passNumber(sink, "PVAS_SERVER_PORT", ioc->pvaPort);
        return;
    }
    open.count = (unsigned)ebpfMonServerSocketsRead(&ioc->pid, 1, 1, SOCKETS_MAX, NULL, &open.list);
    passPort(&open, env, "RSRV_SERVER_PORT", ca, CA_PORT, sink);
    passPort(&open, env, "PVAS_SERVER_PORT", pva, PVA_PORT, sink);
    free(open.list);
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

static void passMore(const ebpfMonEnvironment *env, const char *more, const ebpfMonInventorySink *sink)
{
    char name[64];
    int length;

    for (; sscanf(more, " %63s%n", name, &length) == 1; more += length)
        if (!isMade(name))
            passVariable(sink, name, ebpfMonEnvironmentGet(env, name));
}

void ebpfMonInventoryReadVariables(const ebpfMonInventoryIoc *ioc, const char *const *names, const char *more,
                                   const ebpfMonInventorySink *sink)
{
    ebpfMonMem *mem = ebpfMonMemNew(ioc->pid);
    ebpfMonEnvironment env = {0};
    const char *host, *name;
    char own[256] = "", version[sizeof("EPICS ") + sizeof(ioc->version)];

    if (mem)
        ebpfMonEnvironmentRead(ioc->pid, mem, &env);
    gethostname(own, sizeof(own) - 1);
    host = ebpfMonEnvironmentGet(&env, "HOSTNAME");
    name = ebpfMonEnvironmentGet(&env, "IOCNAME");
    snprintf(version, sizeof(version), "EPICS %s", ioc->version); /* as Base's EPICS_VERSION_STRING */
    passVariable(sink, "EPICS_VERSION", ioc->version[0] ? version : NULL);
    passVariable(sink, "IOCNAME", name && name[0] ? name : ioc->name);
    passVariable(sink, "HOSTNAME", host && host[0] ? host : own);
    passStart(ioc, sink);
    passPorts(ioc, &env, sink);
    for (; *names; names++)
        if (!isMade(*names))
            passVariable(sink, *names, ebpfMonEnvironmentGet(&env, *names));
    passMore(&env, more, sink);
    ebpfMonEnvironmentFree(&env);
    ebpfMonMemFree(mem);
}
