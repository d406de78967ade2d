/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/targetDatabase.h: which IOC is removed if there is no place for a new one. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "watch/followed.h"
#include "watch/targetDatabase.h"

enum { someone = 4711, another = 4712, ioc = 4713 };

static ebpfMonTargets *targets;
static ebpfMonCatalogue cat;

static ebpfMonTarget *add(uid_t uid, uint64_t start)
{
    ebpfMonTarget *t = ebpfMonFollowedNew();

    if (!t)
        testAbort("out of memory");
    t->pid = 1; /* it does not listen for clients */
    t->uid = t->user = uid;
    t->start = start;
    ebpfMonTargetsAdd(targets, t);
    return t;
}

static void removeAll(void)
{
    ebpfMonTarget *t;

    while ((t = ebpfMonTargetsGetFirst(targets)) != NULL) {
        ebpfMonTargetsRemove(targets, t);
        free(t);
    }
}

static int listen1(void)
{
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
        testAbort("no socket");
    return fd;
}

static void testListening(void)
{
    uint64_t now = ebpfMonClockMonotonic();
    ebpfMonTarget *t = add(someone, 1), *read = add(someone, 2);
    int fd;

    testDiag("who listens for clients");
    t->pid = read->pid = getpid();
    t->foundAt = now;
    read->cat = &cat;
    ebpfMonTargetPlaceFindListening(targets, now);
    testOk1(!t->listens && !read->listens);
    fd = listen1();
    ebpfMonTargetPlaceFindListening(targets, now + 1000);
    testOk(!t->listens, "an IOC is not looked at again at once");
    ebpfMonTargetPlaceFindListening(targets, now + 5 * EBPFMON_SECOND_NS);
    testOk(t->listens, "a second later it is looked at again");
    testOk(!read->listens, "an IOC whose database was read is not looked at");
    close(fd);
    ebpfMonTargetPlaceFindListening(targets, now + 7 * EBPFMON_SECOND_NS);
    testOk(t->listens, "the older an IOC is, the less often it is looked at");
    ebpfMonTargetPlaceFindListening(targets, now + 60 * EBPFMON_SECOND_NS);
    testOk1(!t->listens);
    removeAll();
}

static void testPlaces(void)
{
    ebpfMonTarget *victim, *t, *youngest = NULL;
    unsigned n = 0;
    int fd;

    testDiag("places");
    for (; n < EBPFMON_TARGETS_MAX - 3; n++)
        youngest = add(someone, 100 + n);
    add(another, 1);
    add(0, 50000);
    testOk1(ebpfMonTargetPlaceFind(targets, getpid(), ioc, &victim) == 0 && victim == NULL);
    t = add(someone, 60000);
    t->listens = 1;
    testOk(ebpfMonTargetPlaceFind(targets, getpid(), ioc, &victim) == 0 && victim == youngest,
           "of the user who has most the youngest goes, and not the one that listens");
    youngest->cat = &cat;
    testOk(ebpfMonTargetPlaceFind(targets, getpid(), ioc, &victim) == 0 && victim &&
               victim->start == youngest->start - 1,
           "an IOC whose database was read keeps its place");
    testOk(ebpfMonTargetPlaceFind(targets, getpid(), someone, &victim) == -1,
           "one more IOC of that user gets no place");
    fd = listen1();
    testOk(ebpfMonTargetPlaceFind(targets, getpid(), someone, &victim) == 0 && victim->start == youngest->start - 1,
           "one more that listens for clients gets a place");
    for (t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        t->listens = 1;
    testOk(ebpfMonTargetPlaceFind(targets, getpid(), someone, &victim) == -1, "… but not if all others listen, too");
    testOk(ebpfMonTargetPlaceFind(targets, getpid(), another, &victim) == 0 && victim->user == someone,
           "an IOC of another user gets a place");
    close(fd);
    removeAll();
}

MAIN(testTargetPlace)
{
    testPlan(13);
    targets = ebpfMonTargetsNew();
    testListening();
    testPlaces();
    ebpfMonTargetsFree(targets);
    return testDone();
}
