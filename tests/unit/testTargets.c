/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/target.h: the list of watched IOCs, their notes, the sum that is a record's count, the
 * note of a stripped IOC, and the names of two IOCs. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/procRead.h"
#include "watch/followed.h"
#include "watch/target.h"

static ebpfMonTargets *targets;

static ebpfMonTarget *make(pid_t pid, const char *name)
{
    ebpfMonTarget *t = calloc(1, sizeof(*t));

    if (!t)
        testAbort("out of memory");
    t->pid = pid;
    strcpy(t->name, name);
    t->slot = UINT32_MAX;
    t->wantedLevel = ebpfMonLevelPuts;
    ebpfMonTargetsAdd(targets, t);
    return t;
}

static void testList(void)
{
    ebpfMonTarget *a = make(10, "a"), *b = make(11, "b"), *c;
    size_t changes;
    pid_t pids[3];

    testDiag("add, find, remove");
    testOk1(a->iocId && b->iocId && a->iocId != b->iocId);
    testOk1(ebpfMonTargetsFindById(targets, a->iocId) == a && ebpfMonTargetsFindById(targets, b->iocId) == b);
    testOk1(ebpfMonTargetsFindByPid(targets, 10) == a && ebpfMonTargetsFindByPid(targets, 12) == NULL);
    a->gone = 1;
    testOk1(ebpfMonTargetsFindByPid(targets, 10) == NULL);
    c = make(10, "a");
    testOk(ebpfMonTargetsFindByPid(targets, 10) == c, "a pid of an IOC that is gone finds the new one");
    testOk(ebpfMonTargetsFindById(targets, a->iocId) == a, "the id still finds the one that is gone");
    testOk(ebpfMonTargetsListPids(targets, ebpfMonLevelOff, pids, 3) == 2 && pids[0] + pids[1] == 21,
           "the pids of the other IOCs are listed");
    testOk1(ebpfMonTargetsListPids(targets, ebpfMonLevelOff, pids, 1) == 1 &&
            ebpfMonTargetsListPids(targets, ebpfMonLevelOff, pids, 0) == 0);
    b->wantedLevel = c->wantedLevel = ebpfMonLevelOff;
    testOk1(ebpfMonTargetsListPids(targets, ebpfMonLevelPuts, pids, 3) == 0);
    b->wantedLevel = ebpfMonLevelPuts;
    testOk(ebpfMonTargetsListPids(targets, ebpfMonLevelPuts, pids, 3) == 1 && pids[0] == 11,
           "the pids of watched IOCs are listed");
    changes = ebpfMonTargetsCountChanges(targets);
    ebpfMonTargetsRemove(targets, a);
    testOk1(ebpfMonTargetsFindById(targets, a->iocId) == NULL && ebpfMonTargetsCountChanges(targets) == changes + 1);
    ebpfMonTargetsRemove(targets, b);
    testOk1(ebpfMonTargetsGetFirst(targets) == c && c->next == NULL);
    testOk(c->iocId > a->iocId && c->iocId > b->iocId, "no id is used twice");
    ebpfMonTargetsRemove(targets, c);
    testOk1(ebpfMonTargetsGetFirst(targets) == NULL);
    free(a);
    free(b);
    free(c);
}

static void testTrouble(void)
{
    ebpfMonTarget *a = make(10, "a"), *b = make(11, "b"), *c = make(12, "c");
    char text[64], *end, longNote[2 * EBPFMON_NOTE_SIZE];

    testDiag("trouble");
    testOk1(ebpfMonTargetsFindTrouble(targets, text, sizeof(text)) == 0 && !text[0]);
    testOk1(ebpfMonTargetSetNote(targets, a, "no room", 0) && !ebpfMonTargetSetNote(targets, a, "no room", 0));
    testOk1(ebpfMonTargetsFindTrouble(targets, text, sizeof(text)) == 1 && strcmp(text, "a: no room") == 0);
    ebpfMonTargetSetNote(targets, b, "some functions have no cheap place for a probe", 1);
    testOk(ebpfMonTargetsFindTrouble(targets, text, sizeof(text)) == 1, "a remark does not count as trouble");
    ebpfMonTargetSetNote(targets, c, "over its budget", 0);
    testOk1(ebpfMonTargetsFindTrouble(targets, text, sizeof(text)) == 2);
    c->gone = 1;
    testOk(ebpfMonTargetsFindTrouble(targets, text, sizeof(text)) == 1, "an IOC that is gone has no trouble any more");
    testOk(ebpfMonTargetSetNote(targets, a, "no room", 1) == 0 &&
               ebpfMonTargetsFindTrouble(targets, text, sizeof(text)) == 0,
           "the same note may become a remark");
    memset(longNote, 'x', sizeof(longNote) - 1);
    longNote[sizeof(longNote) - 1] = 0;
    ebpfMonTargetSetNote(targets, a, longNote, 0);
    end = memchr(a->note, 0, sizeof(a->note));
    testOk(end == a->note + sizeof(a->note) - 1, "a long note is cut");
    ebpfMonTargetsRemove(targets, a);
    ebpfMonTargetsRemove(targets, b);
    ebpfMonTargetsRemove(targets, c);
    free(a);
    free(b);
    free(c);
}

static ebpfMonTarget *add(pid_t pid, uid_t uid, uint64_t start)
{
    ebpfMonTarget *t = make(pid, "t");

    t->uid = uid;
    t->start = start;
    return t;
}

static void testRank(void)
{
    static ebpfMonCatalogue cat;
    ebpfMonTarget *fakeOld = add(10, 4711, 5), *listening = add(11, 4711, 60), *read = add(12, 4712, 70),
                  *fakeNew = add(13, 4711, 50), *sameUser = add(14, 4712, 80), *ofRoot = add(15, 0, 90), *list[8];
    ebpfMonTarget *const expected[] = { ofRoot, sameUser, read, listening, fakeOld, fakeNew };
    pid_t pids[6];

    testDiag("who goes first");
    read->cat = &cat;
    listening->listens = 1;
    testOk1(ebpfMonTargetsListByRank(targets, list, 8) == 6);
    testOk(memcmp(list, expected, sizeof(expected)) == 0,
           "the order is: credible ones, the newest first; then those that listen; then the oldest");
    testOk1(ebpfMonTargetsListByRank(targets, list, 2) == 2 && list[1] == sameUser);
    ofRoot->gone = 1;
    testOk1(ebpfMonTargetsListPids(targets, ebpfMonLevelOff, pids, 6) == 5 && pids[0] == 14 && pids[2] == 11 &&
            pids[4] == 13);
    read->cat = NULL;
    ebpfMonTargetsListByRank(targets, list, 8);
    testOk(list[1] == listening, "an IOC with clients comes before one of a user without an IOC");
    for (unsigned i = 0; i < 6; i++) {
        ebpfMonTargetsRemove(targets, expected[i]);
        free(expected[i]);
    }
}

#define RECORDS 5

/* Records 0 to 2 are a stretch in bank 0, 3 and 4 another in bank 1. Three chains began at record 0 and passed all of
 * the stretch, two began at record 1. */
static void testCounts(void)
{
    uint32_t order[RECORDS] = { 0, 1, 2, 3, 4 }, place[RECORDS] = { 0, 1, 2, 3, 4 };
    uint8_t ahead0[RECORDS] = { 2, 1, 0, 0, 0 }, ahead1[RECORDS] = { 0, 0, 0, 1, 0 };
    ebpfMonStretches stretch0 = { .n = RECORDS, .order = order, .place = place, .ahead = ahead0 };
    ebpfMonStretches stretch1 = { .n = RECORDS, .order = order, .place = place, .ahead = ahead1 };
    static struct ebpfMonRecState state[RECORDS];
    uint8_t how[RECORDS] = { [2] = EBPFMON_BY_TRAP, [4] = EBPFMON_BY_TRAP | EBPFMON_AT_LEAST };
    int64_t adjust[RECORDS] = { [0] = 100, [4] = -1 };
    uint64_t now[RECORDS];
    static const uint64_t expected[RECORDS] = { 100 + 1 + 3, 2 + 3 + 2, 50, 7 + 4, 9 - 1 };
    ebpfMonCatalogue cat = { .count = RECORDS };
    ebpfMonTarget t = { .cat = &cat, .slot = UINT32_MAX };
    unsigned wrong = 0;

    testDiag("counts");
    testOk(ebpfMonTargetCountRecord(&t, 0) == 0, "an IOC without a slot has no counts");
    state[0].count = 1;
    state[0].pass[0] = 3;
    state[1].count = 2;
    state[1].pass[0] = 2;
    state[2].count = 5;
    state[2].trapped = 50;
    state[3].count = 7;
    state[3].pass[1] = 4;
    state[4].count = 9;
    state[4].trapped = 1000;
    t.slot = 0;
    t.recState = state;
    t.how = how;
    t.adjust = adjust;
    t.closures.stretch[0] = &stretch0;
    t.closures.stretch[1] = &stretch1;
    ebpfMonTargetCountRecords(&t, now);
    for (uint32_t i = 0; i < RECORDS; i++)
        if (now[i] != expected[i] || ebpfMonTargetCountRecord(&t, i) != expected[i]) {
            testDiag("record %u: %llu, %llu, expected %llu", i, (unsigned long long)now[i],
                     (unsigned long long)ebpfMonTargetCountRecord(&t, i), (unsigned long long)expected[i]);
            wrong++;
        }
    testOk(wrong == 0, "own count or trap, passes of both banks, and what was added when the way of counting changed");
}

static void testNameless(void)
{
    static const char what[] = ". ebpfMonSymbols makes some";
    char note[EBPFMON_NOTE_SIZE];
    ebpfMonBinary core = { .isNameless = 1 };

    testDiag("why nothing is seen inside");
    ebpfMonFollowedWriteNameless(&core, 1, note);
    testOk(strstr(note, "(it has none)") && strstr(note, what) && !strstr(note, "x86-64"), "%s", note);
    memset(core.buildId, 'a', sizeof(core.buildId) - 1);
    ebpfMonFollowedWriteNameless(&core, 0, note);
    testOk(strstr(note, core.buildId) && strstr(note, "recognition is for x86-64"), "%s", note);
    testOk(strstr(note, what) != NULL, "the longest text is terminated");
    core.foreign = "aarch64";
    ebpfMonFollowedWriteNameless(&core, 1, note);
    testOk(strstr(note, "a program for aarch64") && !strstr(note, "stripped"), "%s", note);
}

/* A child of this process: it waits for ever; or its first thread has ended, and another one waits. */
static void *waitForEver(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static pid_t startChild(int withoutFirst)
{
    pid_t pid = fork();
    pthread_t thread;

    if (pid)
        return pid;
    if (withoutFirst && pthread_create(&thread, NULL, waitForEver, NULL) == 0)
        pthread_exit(NULL);
    waitForEver(NULL);
    _exit(0);
}

static const char *nameOf(const char *name)
{
    static char text[EBPFMON_IOCNAME_SIZE];

    strcpy(text, name);
    ebpfMonTargetTextTellApart(targets, 4711, text);
    return text;
}

static void awaitState(pid_t pid, char state)
{
    char text[512];

    while (ebpfMonProcReadText(pid, "stat", text, sizeof(text)) > 0 && strrchr(text, ')')[2] != state)
        sched_yield();
}

static void testNames(void)
{
    pid_t child[2] = { startChild(0), startChild(1) };
    ebpfMonTarget *a = make(child[0], "a"), *b = make(child[1], "b");
    siginfo_t info;

    testDiag("names");
    a->start = ebpfMonProcStart(a->pid);
    b->start = ebpfMonProcStart(b->pid);
    awaitState(b->pid, 'Z');
    testOk1(strcmp(nameOf("c"), "c") == 0);
    testOk(strcmp(nameOf("a"), "a#4711") == 0, "a second IOC of one name gets its pid: %s", nameOf("a"));
    testOk(strcmp(nameOf("b"), "b#4711") == 0, "… also if its first thread has ended");
    for (int i = 0; i < 2; i++) {
        kill(child[i], SIGKILL);
        waitid(P_PID, (id_t)child[i], &info, WEXITED | WNOWAIT); /* it stays a zombie */
    }
    testOk(strcmp(nameOf("a"), "a") == 0 && strcmp(nameOf("b"), "b") == 0,
           "they have ended, and the list does not know it yet: who was restarted keeps its name");
    a->start++;
    waitid(P_PID, (id_t)child[0], &info, WEXITED);
    waitid(P_PID, (id_t)child[1], &info, WEXITED);
    testOk1(strcmp(nameOf("a"), "a") == 0 && strcmp(nameOf("b"), "b") == 0);
    a->pid = getpid();
    testOk(strcmp(nameOf("a"), "a") == 0, "a name is free again if its pid is another process now");
    a->start = ebpfMonProcStart(a->pid);
    testOk1(strcmp(nameOf("a"), "a#4711") == 0);
    a->gone = 1;
    testOk1(strcmp(nameOf("a"), "a") == 0);
    ebpfMonTargetsRemove(targets, a);
    ebpfMonTargetsRemove(targets, b);
    free(a);
    free(b);
}

MAIN(testTargets)
{
    testPlan(41);
    targets = ebpfMonTargetsNew();
    testList();
    testTrouble();
    testRank();
    testCounts();
    testNameless();
    testNames();
    ebpfMonTargetsFree(targets);
    ebpfMonTargetsFree(NULL);
    return testDone();
}
