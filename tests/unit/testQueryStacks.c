/* SPDX-License-Identifier: BSD-3-Clause */
/* query/queryStacks.h: stacks of more processes than are kept at a time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "query/queryStacks.h"

#define PROCESSES 600 /* more than queryStacks.c keeps */

static const ebpfMonQueryNames noNames;

/* Adds a stack without bytes. A process that nobody has seen is made of the test itself and a number. */
static void addStack(ebpfMonQueryStacks *stacks, uint32_t process)
{
    static struct ebpfMonQueryEvent event;

    event.tgid = (uint32_t)getpid();
    event.iocId = process;
    snprintf(event.comm, sizeof(event.comm), "thread%u", process);
    ebpfMonQueryStacksAdd(stacks, &event);
}

static unsigned countLines(ebpfMonQueryStacks *stacks, unsigned *stacksOfLast)
{
    char *text = ebpfMonQueryStacksGetText(stacks);
    unsigned lines = 0;

    *stacksOfLast = 0;
    for (const char *at = text; at && (at = strchr(at, '\n')); at++)
        lines++;
    for (const char *at = text ? strstr(text, ";thread600;") : NULL; at && *at != '\n'; at++)
        if (*at == ' ')
            *stacksOfLast = (unsigned)atoi(at + 1);
    free(text);
    return lines;
}

MAIN(testQueryStacks)
{
    char why[200];
    const char *query = "{\"queries\": [{\"name\": \"Q\", \"source\": {\"profile\": 99}, \"keys\": [\"thread\"],"
                        " \"stacks\": true}]}";
    ebpfMonQuerySet *set = ebpfMonQueryParse("test", query, strlen(query), why, sizeof(why));
    unsigned lines, last;
    ebpfMonQueryStacks *stacks;

    testPlan(3);
    if (!set)
        testAbort("%s", why);
    stacks = ebpfMonQueryStacksNew(set->spec, &noNames, NULL);
    for (uint32_t i = 1; i <= PROCESSES; i++)
        addStack(stacks, i);
    testOk(ebpfMonQueryStacksFinish(stacks) == 0, "stacks of %d processes, one after the other: none is missing",
           PROCESSES);
    for (int i = 0; i < 2; i++)
        addStack(stacks, PROCESSES);
    addStack(stacks, 1); /* it was the first one */
    testOk(ebpfMonQueryStacksFinish(stacks) == 0, "nor of those that come again");
    lines = countLines(stacks, &last);
    testOk(lines == PROCESSES && last == 3, "each has its line: %u, %u stacks of the last one", lines, last);
    ebpfMonQueryStacksFree(stacks);
    ebpfMonQueryStacksFree(NULL);
    free(set);
    return testDone();
}
