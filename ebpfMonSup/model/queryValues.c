/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/lazyMutex.h"
#include "model/queryValues.h"

static ebpfMonLazyMutex lock = EBPFMON_LAZY_MUTEX; /* protects everything below */
static ebpfMonQueryResult *results[EBPFMON_QUERIES_MAX];
static char *stacks[EBPFMON_QUERIES_MAX];
static int count;
static void (*listener)(int number); /* set and read under the lock, called without it */

int ebpfMonQueryResultsAdd(const char *name)
{
    int number = 0;

    if (strlen(name) >= EBPFMON_QUERY_NAME_SIZE)
        return -1;
    ebpfMonLazyMutexLock(&lock);
    while (number < count && strcmp(results[number]->name, name) != 0)
        number++;
    if (number == count) {
        ebpfMonQueryResult *made = count < EBPFMON_QUERIES_MAX ? calloc(1, sizeof(*made)) : NULL;

        if (made) {
            strcpy(made->name, name);
            strcpy(made->message, "no query of this name is loaded");
            results[count++] = made;
        } else {
            number = -1;
        }
    }
    ebpfMonLazyMutexUnlock(&lock);
    return number;
}

int ebpfMonQueryResultsCount(void)
{
    int all;

    ebpfMonLazyMutexLock(&lock);
    all = count;
    ebpfMonLazyMutexUnlock(&lock);
    return all;
}

ebpfMonQueryResult *ebpfMonQueryResultsLock(int number)
{
    ebpfMonLazyMutexLock(&lock);
    return results[number];
}

void ebpfMonQueryResultsUnlock(void)
{
    ebpfMonLazyMutexUnlock(&lock);
}

void ebpfMonQueryResultsSetStacks(int number, char *text)
{
    char *before;

    ebpfMonLazyMutexLock(&lock);
    before = stacks[number];
    stacks[number] = text;
    ebpfMonLazyMutexUnlock(&lock);
    free(before);
}

char *ebpfMonQueryResultsCopyStacks(int number)
{
    char *copy;

    ebpfMonLazyMutexLock(&lock);
    copy = stacks[number] ? strdup(stacks[number]) : NULL;
    ebpfMonLazyMutexUnlock(&lock);
    return copy;
}

void ebpfMonQueryResultsNotify(int number)
{
    void (*changed)(int number);

    ebpfMonLazyMutexLock(&lock);
    changed = listener; /* copied, because it is called without the lock: it takes locks of its own */
    ebpfMonLazyMutexUnlock(&lock);
    if (changed)
        changed(number);
}

void ebpfMonQueryResultsSetListener(void (*changed)(int number))
{
    ebpfMonLazyMutexLock(&lock);
    listener = changed;
    ebpfMonLazyMutexUnlock(&lock);
}
