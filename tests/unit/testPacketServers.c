/* SPDX-License-Identifier: BSD-3-Clause */
/* model/packetServers.h: the servers without EPICS Base, and the names of their PVs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "model/packetServers.h"

static ebpfMonPacketServers *servers;
static ebpfMonPacketServer list[EBPFMON_PACKET_SERVERS];
static unsigned changes;

static void countChange(void *arg)
{
    changes++;
}

static ebpfMonPacketServer makeServer(pid_t pid, int isListed)
{
    ebpfMonPacketServer server = { .pid = pid, .start = 7, .caPort = 5064, .isListed = isListed };

    snprintf(server.name, sizeof(server.name), "server%d", (int)pid);
    return server;
}

static void setServers(unsigned count, int isListed)
{
    for (unsigned i = 0; i < count; i++)
        list[i] = makeServer((pid_t)i + 1, isListed);
    ebpfMonPacketServersSetList(servers, list, count);
}

/* The names of this server, with blanks between them. */
static const char *readPvs(uint32_t id)
{
    static char text[200];
    unsigned count;
    char *names = ebpfMonPacketServersCopyPvs(servers, id, &count), *name = names;

    text[0] = 0;
    for (unsigned i = 0; i < count; i++, name += strlen(name) + 1)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "", name);
    free(names);
    return text;
}

static void testNames(void)
{
    char longest[252];
    uint32_t id;

    ebpfMonPacketServersAddPv(servers, 1, 7, "EARLY");
    setServers(1, 1);
    testOk(ebpfMonPacketServersCopy(servers, list) == 1 && list[0].pvs == 0 && strcmp(list[0].name, "server1") == 0,
           "Without a wish for names none is kept");
    id = list[0].id;
    ebpfMonPacketServersWantPvs(servers, 1);
    ebpfMonPacketServersAddPv(servers, 1, 7, "A");
    ebpfMonPacketServersAddPv(servers, 1, 7, "B.DESC");
    ebpfMonPacketServersAddPv(servers, 1, 7, "A");
    ebpfMonPacketServersAddPv(servers, 1, 7, "");
    ebpfMonPacketServersAddPv(servers, 1, 7, "two\nlines");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    ebpfMonPacketServersAddPv(servers, 1, 7, longest);
    ebpfMonPacketServersAddPv(servers, 1, 8, "OF ANOTHER PROCESS");
    testOk(strcmp(readPvs(id), "A B.DESC") == 0, "Each name once; not empty, long or hostile ones: \"%s\"",
           readPvs(id));
    setServers(1, 1);
    testOk(strcmp(readPvs(id), "A B.DESC") == 0, "They stay while the server is known");
    ebpfMonPacketServersWantPvs(servers, 0);
    testOk(strcmp(readPvs(id), "") == 0, "They are dropped when nobody wants them any more");
}

static void testManyNames(void)
{
    char name[16];

    ebpfMonPacketServersWantPvs(servers, 1);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < EBPFMON_PACKET_PVS + 10; i++) {
            snprintf(name, sizeof(name), "PV%d", i);
            ebpfMonPacketServersAddPv(servers, 1, 7, name);
        }
    ebpfMonPacketServersCopy(servers, list);
    testOk(list[0].pvs == EBPFMON_PACKET_PVS, "So many names of one server are kept: %u", list[0].pvs);
}

static void testLists(void)
{
    uint32_t id;

    setServers(0, 0);
    changes = 0;
    ebpfMonPacketServersAddPv(servers, 1, 7, "BEFORE THE LIST");
    setServers(1, 0);
    testOk(ebpfMonPacketServersCopy(servers, list) == 0 && changes == 0,
           "A server that is not to be listed yet is kept silently");
    setServers(1, 1);
    testOk(ebpfMonPacketServersCopy(servers, list) == 1 && changes == 1, "When it is listed, the listener is told");
    id = list[0].id;
    testOk(strcmp(readPvs(id), "BEFORE THE LIST") == 0, "It has the names of before");
    setServers(1, 1);
    testOk(changes == 1, "The same list again is no change");
    setServers(0, 1);
    testOk(changes == 2 && ebpfMonPacketServersCopy(servers, list) == 0 && !readPvs(id)[0],
           "It is forgotten with its names");
    setServers(1, 1);
    testOk(ebpfMonPacketServersCopy(servers, list) == 1 && list[0].id != id, "Its id is never used again");
    setServers(EBPFMON_PACKET_SERVERS, 1);
    ebpfMonPacketServersAddPv(servers, 1000, 7, "NO ROOM");
    testOk(ebpfMonPacketServersCopy(servers, list) == EBPFMON_PACKET_SERVERS, "No more servers than there is room for");
}

MAIN(testPacketServers)
{
    testPlan(12);
    servers = ebpfMonPacketServersNew();
    if (!servers)
        testAbort("no memory");
    ebpfMonPacketServersSetListener(servers, countChange, NULL);
    testNames();
    testManyNames();
    testLists();
    ebpfMonPacketServersFree(servers);
    return testDone();
}
