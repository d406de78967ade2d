/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "model/queryValues.h"

struct ebpfMonQueryResults {
    epicsMutexId lock; /* protects everything below */
    ebpfMonQueryResult *result[EBPFMON_QUERIES_MAX];
    char *stacks[EBPFMON_QUERIES_MAX];
    char isKept[EBPFMON_QUERIES_MAX]; /* a record shows it */
    int count;
    void (*listener)(int number); /* set and read under the lock, called without it */
};

ebpfMonQueryResults *ebpfMonQueryResultsNew(void)
{
    ebpfMonQueryResults *all = calloc(1, sizeof(*all));

    if (all)
        all->lock = epicsMutexMustCreate();
    return all;
}

void ebpfMonQueryResultsFree(ebpfMonQueryResults *all)
{
    if (!all)
        return;
    for (int i = 0; i < all->count; i++) {
        free(all->result[i]);
        free(all->stacks[i]);
    }
    epicsMutexDestroy(all->lock);
    free(all);
}

/* The number of the result with this name; all->count: there is none. Under the lock. */
static int findName(const ebpfMonQueryResults *all, const char *name)
{
    int number = 0;

    while (number < all->count && strcmp(all->result[number]->name, name) != 0)
        number++;
    return number;
}

static void setName(ebpfMonQueryResult *result, const char *name)
{
    strcpy(result->name, name);
    strcpy(result->message, "no query of this name is loaded");
}

int ebpfMonQueryResultsAdd(ebpfMonQueryResults *all, const char *name)
{
    int number;

    if (strlen(name) >= EBPFMON_QUERY_NAME_SIZE)
        return -1;
    epicsMutexMustLock(all->lock);
    number = findName(all, name);
    if (number == all->count) {
        ebpfMonQueryResult *made = all->count < EBPFMON_QUERIES_MAX ? calloc(1, sizeof(*made)) : NULL;

        if (made) {
            setName(made, name);
            all->result[all->count++] = made;
        } else {
            number = -1;
        }
    }
    epicsMutexUnlock(all->lock);
    return number;
}

void ebpfMonQueryResultsKeep(ebpfMonQueryResults *all, int number)
{
    epicsMutexMustLock(all->lock);
    all->isKept[number] = 1;
    epicsMutexUnlock(all->lock);
}

int ebpfMonQueryResultsRename(ebpfMonQueryResults *all, int number, const char *name)
{
    char *stacks = NULL;
    int status = -1;

    if (strlen(name) >= EBPFMON_QUERY_NAME_SIZE)
        return -1;
    epicsMutexMustLock(all->lock);
    if (!all->isKept[number] && findName(all, name) == all->count) {
        stacks = all->stacks[number];
        all->stacks[number] = NULL;
        memset(all->result[number], 0, sizeof(*all->result[number]));
        setName(all->result[number], name);
        status = 0;
    }
    epicsMutexUnlock(all->lock);
    free(stacks);
    return status;
}

int ebpfMonQueryResultsCount(ebpfMonQueryResults *all)
{
    int count;

    epicsMutexMustLock(all->lock);
    count = all->count;
    epicsMutexUnlock(all->lock);
    return count;
}

ebpfMonQueryResult *ebpfMonQueryResultsLock(ebpfMonQueryResults *all, int number)
{
    epicsMutexMustLock(all->lock);
    return all->result[number];
}

void ebpfMonQueryResultsUnlock(ebpfMonQueryResults *all)
{
    epicsMutexUnlock(all->lock);
}

void ebpfMonQueryResultsSetStacks(ebpfMonQueryResults *all, int number, char *text)
{
    char *before;

    epicsMutexMustLock(all->lock);
    before = all->stacks[number];
    all->stacks[number] = text;
    epicsMutexUnlock(all->lock);
    free(before);
}

char *ebpfMonQueryResultsCopyStacks(ebpfMonQueryResults *all, int number)
{
    char *copy;

    epicsMutexMustLock(all->lock);
    copy = all->stacks[number] ? strdup(all->stacks[number]) : NULL;
    epicsMutexUnlock(all->lock);
    return copy;
}

void ebpfMonQueryResultsNotify(ebpfMonQueryResults *all, int number)
{
    void (*changed)(int number);

    epicsMutexMustLock(all->lock);
    changed = all->listener; /* copied, because it is called without the lock: it takes locks of its own */
    epicsMutexUnlock(all->lock);
    if (changed)
        changed(number);
}

void ebpfMonQueryResultsSetListener(ebpfMonQueryResults *all, void (*changed)(int number))
{
    epicsMutexMustLock(all->lock);
    all->listener = changed;
    epicsMutexUnlock(all->lock);
}
