/* SPDX-License-Identifier: BSD-3-Clause */
/* probe/packets.h: the network namespace that a source reads, and the message if it cannot be opened. */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <testMain.h>

#include "packetNet.h"

static ino_t netns(const char *pid)
{
    char path[48];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
    return stat(path, &st) ? 0 : st.st_ino;
}

static void testOther(void)
{
    char why[256] = "", text[16];
    int talk;
    pid_t pid = childStart(&talk);
    ino_t own = netns("thread-self");
    ebpfMonPackets *other = ebpfMonPacketsOpen(pid, 0, why, sizeof(why));
    time_t end = time(NULL) + 10;

    testDiag("another network namespace");
    if (!other)
        testAbort("%s", why);
    snprintf(text, sizeof(text), "%d", (int)pid);
    testOk(ebpfMonPacketsGetNetns(other) == netns(text) && netns(text) != own,
           "the source has the namespace of the child");
    testOk(netns("thread-self") == own, "we are back in our own");
    watch(5064);
    childSend(talk, 5064);
    while (!seen.packets && time(NULL) < end)
        readWithin(other, 100);
    testOk(seen.packets == 1, "a packet that is sent there is seen there: %u", seen.packets);
    watch(5064);
    catchUp();
    testOk(seen.packets == 0, "... and is not seen in ours");
    close(talk);
    waitpid(pid, NULL, 0);
    ebpfMonPacketsClose(other);
    testOk(!ebpfMonPacketsOpen(pid, 0, why, sizeof(why)) && strstr(why, text), "a namespace that is gone: %s", why);
}

static void testNoPrivileges(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        char why[256] = "";

        _exit(setgid(65534) || setuid(65534) || ebpfMonPacketsOpen(0, 0, why, sizeof(why))
              || !strstr(why, "CAP_NET_RAW"));
    }
    testOk(waitpid(pid, &status, 0) == pid && status == 0, "without privileges it says which it needs");
}

MAIN(testPacketsNetns)
{
    testPlan(7);
    if (skipWithoutNetwork(7) || skipWithoutSource(7))
        return testDone();
    testOk(ebpfMonPacketsGetNetns(source) == netns("self"), "our own namespace");
    testOther();
    ebpfMonPacketsClose(source);
    testNoPrivileges();
    return testDone();
}
