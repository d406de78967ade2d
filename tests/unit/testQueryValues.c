/* SPDX-License-Identifier: BSD-3-Clause */
/* query/queryValues.h: results by name, their limit, their stacks, the listener of changes; two lists share nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "query/queryValues.h"

static int told = -1;

static void note(int number)
{
    told = number;
}

static void testNames(ebpfMonQueryResults *all)
{
    char name[EBPFMON_QUERY_NAME_SIZE + 1];
    const ebpfMonQueryResult *result;

    testOk1(ebpfMonQueryResultsAdd(all, "first") == 0 && ebpfMonQueryResultsAdd(all, "second") == 1);
    testOk(ebpfMonQueryResultsAdd(all, "first") == 0, "a name has one result");
    result = ebpfMonQueryResultsLock(all, 1);
    testOk(strcmp(result->name, "second") == 0 && result->state == ebpfMonQueryAbsent && result->message[0],
           "a new one is absent, and says so: %s", result->message);
    ebpfMonQueryResultsUnlock(all);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    testOk(ebpfMonQueryResultsAdd(all, name) == -1, "a name of %d characters is too long", EBPFMON_QUERY_NAME_SIZE);
    for (int i = 2; i < EBPFMON_QUERIES_MAX; i++) {
        snprintf(name, sizeof(name), "q%d", i);
        if (ebpfMonQueryResultsAdd(all, name) != i)
            testAbort("number %d", i);
    }
    testOk(ebpfMonQueryResultsAdd(all, "more") == -1 && ebpfMonQueryResultsAdd(all, "second") == 1,
           "there are %d at most", EBPFMON_QUERIES_MAX);
}

/* The name of a query that is gone is free for another one, unless a record shows it. */
static void testRename(void)
{
    ebpfMonQueryResults *all = ebpfMonQueryResultsNew();
    const ebpfMonQueryResult *result;
    char *copy;

    ebpfMonQueryResultsAdd(all, "one");
    ebpfMonQueryResultsAdd(all, "two");
    ebpfMonQueryResultsKeep(all, 1);
    ebpfMonQueryResultsSetStacks(all, 0, strdup("main 1"));
    ebpfMonQueryResultsLock(all, 0)->events = 7;
    ebpfMonQueryResultsUnlock(all);
    testOk(ebpfMonQueryResultsRename(all, 1, "other") == -1 && ebpfMonQueryResultsAdd(all, "two") == 1,
           "a record shows it");
    testOk(ebpfMonQueryResultsRename(all, 0, "two") == -1, "another result has this name");
    testOk1(ebpfMonQueryResultsRename(all, 0, "third") == 0 && ebpfMonQueryResultsAdd(all, "third") == 0);
    copy = ebpfMonQueryResultsCopyStacks(all, 0);
    result = ebpfMonQueryResultsLock(all, 0);
    testOk(!copy && !result->events && result->state == ebpfMonQueryAbsent && result->message[0],
           "nothing of the old one is left");
    ebpfMonQueryResultsUnlock(all);
    testOk(ebpfMonQueryResultsAdd(all, "one") == 2, "the old name is a new result");
    ebpfMonQueryResultsFree(all);
}

static void testStacks(ebpfMonQueryResults *all)
{
    char *copy = ebpfMonQueryResultsCopyStacks(all, 1);

    testOk(!copy, "before the first look there are no stacks");
    ebpfMonQueryResultsSetStacks(all, 1, strdup("main;run 3"));
    ebpfMonQueryResultsSetStacks(all, 1, strdup("main;run 4"));
    copy = ebpfMonQueryResultsCopyStacks(all, 1);
    testOk(copy && strcmp(copy, "main;run 4") == 0, "the last stacks are given as a copy");
    free(copy);
    ebpfMonQueryResultsSetStacks(all, 1, NULL);
    testOk1(!ebpfMonQueryResultsCopyStacks(all, 1) && !ebpfMonQueryResultsCopyStacks(all, 0));
    ebpfMonQueryResultsSetStacks(all, 2, strdup("freed with the list"));
}

static void testListener(ebpfMonQueryResults *all, ebpfMonQueryResults *other)
{
    ebpfMonQueryResultsNotify(all, 3);
    testOk(told == -1, "without a listener nobody is told");
    ebpfMonQueryResultsSetListener(all, note);
    ebpfMonQueryResultsNotify(all, 3);
    testOk1(told == 3);
    ebpfMonQueryResultsNotify(other, 4);
    testOk(told == 3, "a listener of one list is not told of another");
    ebpfMonQueryResultsSetListener(all, NULL);
    ebpfMonQueryResultsNotify(all, 5);
    testOk1(told == 3);
}

MAIN(testQueryValues)
{
    ebpfMonQueryResults *all = ebpfMonQueryResultsNew(), *other = ebpfMonQueryResultsNew();

    testPlan(13 + 5);
    testNames(all);
    testRename();
    testStacks(all);
    testOk(ebpfMonQueryResultsAdd(other, "second") == 0, "two lists do not share names");
    testListener(all, other);
    ebpfMonQueryResultsFree(all);
    ebpfMonQueryResultsFree(other);
    ebpfMonQueryResultsFree(NULL);
    return testDone();
}
