/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CA link made a put: by process and channel, the newest within a minute. */
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "put/linkWrites.h"

#define SECOND 1000000000ull
#define MS     1000000ull
#define T0     (1000 * SECOND)

static ebpfMonPut put;

static void add(ebpfMonLinkWrites *writes, uint32_t pid, uint64_t at, const char *channel, const char *link)
{
    ebpfMonLinkWrite w = { .pid = pid, .at = at, .chain = { .iocId = 7, .tid = pid + 1, .begin = at } };

    snprintf(w.channel, sizeof(w.channel), "%s", channel);
    snprintf(w.link, sizeof(w.link), "%s", link);
    strcpy(w.ioc, "iocA");
    strcpy(w.root, "ROOT");
    strcpy(w.cause, "scan 1 second");
    ebpfMonLinkWritesAdd(writes, &w);
}

static int find(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel, uint64_t now)
{
    memset(&put, 0, sizeof(put));
    return ebpfMonLinkWritesSetWriter(writes, pid, channel, now, &put);
}

static int take(ebpfMonLinkWrites *writes, const char *channel, uint64_t sentAt)
{
    memset(&put, 0, sizeof(put));
    return ebpfMonLinkWritesTakeWriter(writes, 1, channel, sentAt, &put);
}

/* The packets of the puts tell when they were sent. */
static void testSent(ebpfMonLinkWrites *writes)
{
    unsigned right = 0;

    for (uint64_t i = 0; i < 4; i++)
        add(writes, 1, T0 + i * 100 * MS, "S:X", "A:ONE.OUT");
    for (uint64_t i = 0; i < 4; i++)
        right += take(writes, "S:X", T0 + (i * 100 + 1) * MS) && put.linkChain.begin == T0 + i * 100 * MS;
    testOk(!put.isLinkUnsure, "… for certain");
    testOk(right == 4, "four puts that wait for a lock together have the chains that wrote them: %u", right);
    testOk(take(writes, "S:X", T0 + 101 * MS) && put.linkChain.begin == T0 + 100 * MS,
           "the same message again has the same chain");
    testOk(!take(writes, "S:X", T0 + 500 * MS), "another put of the process is not by the link");
    add(writes, 1, T0 + SECOND, "S:X", "A:ONE.OUT");
    add(writes, 1, T0 + SECOND + MS, "S:X", "A:ONE.OUT");
    testOk(take(writes, "S:X", T0 + SECOND + 2 * MS) && put.linkChain.begin == T0 + SECOND + MS &&
               !take(writes, "S:X", T0 + SECOND + 3 * MS), "a value that a later one of the link replaced is not sent");
    testOk(take(writes, "S:X", T0 + SECOND + 2 * MS) && put.isLinkUnsure, "… unless that came while it was sent");

    add(writes, 1, T0, "S:Y", "A:ONE.OUT");
    add(writes, 1, T0 + MS, "S:Y", "A:TWO.OUT");
    add(writes, 1, T0 + 2 * MS, "S:Y", "A:ONE.OUT");
    testOk(take(writes, "S:Y", T0 + 3 * MS) && strcmp(put.link, "A:ONE.OUT") == 0 &&
               put.linkChain.begin == T0 + 2 * MS && strstr(put.cause, "one of 1 other"),
           "of two links the one is served first that waited first");
    testOk(take(writes, "S:Y", T0 + 4 * MS) && strcmp(put.link, "A:TWO.OUT") == 0, "… then the other one");

    for (uint64_t i = 0; i < 9; i++)
        add(writes, 1, T0 + i * 100 * MS, "S:Z", "A:ONE.OUT");
    testOk(take(writes, "S:Z", T0 + MS) && strcmp(put.link, "A:ONE.OUT") == 0 && !put.linkChain.iocId && !put.cause[0],
           "of a write that is forgotten only the link is known");
    testOk(take(writes, "S:Z", T0 + 101 * MS) && put.linkChain.begin == T0 + 100 * MS, "… of the next one all");
}

MAIN(testLinkWrites)
{
    ebpfMonLinkWrites *writes = ebpfMonLinkWritesNew(), *other = ebpfMonLinkWritesNew();
    char name[40];

    testPlan(24);
    testOk(!find(writes, 1, "B:X", T0), "nothing was written");
    add(writes, 1, T0, "B:X", "A:ONE.OUT");
    testOk(find(writes, 1, "B:X", T0 + SECOND) && put.through == ebpfMonByCaLink &&
               strcmp(put.link, "A:ONE.OUT") == 0 && strcmp(put.linkIoc, "iocA") == 0 &&
               strcmp(put.root, "ROOT") == 0 && strcmp(put.cause, "scan 1 second") == 0 && put.linkChain.iocId == 7 &&
               put.linkChain.begin == T0,
           "a write with all of its data: %s", put.link);
    testOk(!find(writes, 2, "B:X", T0) && !find(writes, 1, "B:Y", T0),
           "a write of another process or to another channel is not found");
    testOk(!find(other, 1, "B:X", T0), "another table does not have it");
    testOk(find(writes, 1, "B:X", T0 + 60 * SECOND), "a link that connects late writes late");
    testOk(!find(writes, 1, "B:X", T0 + 61 * SECOND), "after more than a minute it is too late");
    testOk(!find(writes, 1, "B:X", T0 - 1), "a write after the put is not its writer");

    add(writes, 1, T0 + 5 * SECOND, "B:X", "A:TWO.OUT");
    testOk(find(writes, 1, "B:X", T0 + 6 * SECOND) && strcmp(put.link, "A:TWO.OUT") == 0 && !strstr(put.cause, "other"),
           "the newest link counts; the other one wrote long before");
    add(writes, 1, T0 + 5 * SECOND + SECOND / 2, "B:X", "A:ONE.OUT");
    testOk(find(writes, 1, "B:X", T0 + 6 * SECOND) && strcmp(put.link, "A:ONE.OUT") == 0 &&
           strstr(put.cause, "or one of 1 other links"), "two links wrote within a second: %s", put.cause);
    add(writes, 1, T0 + 7 * SECOND, "B:X", "A:ONE.OUT");
    testOk(find(writes, 1, "B:X", T0 + 8 * SECOND) && !strstr(put.cause, "other"), "a link is named once");

    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "A:N%d.OUT", i);
        add(writes, 3, T0 + (uint64_t)i, "B:Z", name);
    }
    testOk(find(writes, 3, "B:Z", T0 + SECOND) && strcmp(put.link, "A:N3.OUT") == 0 && strstr(put.cause, "3 other"),
           "four links at once: %s", put.cause);
    add(writes, 3, T0 + 10, "B:Z", "A:N4.OUT");
    testOk(find(writes, 3, "B:Z", T0 + SECOND) && strcmp(put.link, "A:N4.OUT") == 0 && strstr(put.cause, "3 other"),
           "a fifth link takes the place of the oldest");
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "B:N%d", i);
        add(writes, 4, T0 + (uint64_t)i, name, "A:ONE.OUT");
    }
    testOk(find(writes, 4, "B:N99999", T0 + SECOND), "of many channels the last one is known");
    testOk(!find(writes, 4, "B:N0", T0 + SECOND), "… the first one was forgotten");
    testSent(other);
    ebpfMonLinkWritesFree(writes);
    ebpfMonLinkWritesFree(other);
    ebpfMonLinkWritesFree(NULL);
    return testDone();
}
