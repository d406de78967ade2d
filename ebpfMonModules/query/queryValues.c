/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "query/queryValues.h"

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

static void giveMetric(const ebpfMonQueryResult *r, ebpfMonModuleTakeMetric take, void *to)
{
    ebpfMonModuleMetricRow row[EBPFMON_QUERY_METRICS_MAX];
    ebpfMonModuleMetric metric = {
        .kind = "query", .name = r->name, .title = r->title[0] ? r->title : "Events of this query", .unit = r->unit,
        .keys = r->keys, .hasValue = r->hasValue, .row = row, .rows = r->rows < r->metrics ? r->rows : r->metrics,
        .bars = r->rowBars, .barMost = r->barMost,
    };

    for (unsigned k = 0; k < r->keys; k++)
        metric.keyName[k] = r->keyName[k];
    for (unsigned i = 0; i < metric.rows; i++) {
        const ebpfMonQueryRow *from = &r->row[i];

        row[i] = (ebpfMonModuleMetricRow){ .count = from->count, .sum = from->sum, .min = from->min, .max = from->max,
                                           .p99 = from->p99, .bar = r->rowBar[i] };
        for (unsigned k = 0; k < r->keys; k++)
            row[i].key[k] = from->key[k];
    }
    if (metric.rows && r->state != ebpfMonQueryAbsent)
        take(to, &metric);
}

void ebpfMonQueryResultsGiveMetrics(ebpfMonQueryResults *all, ebpfMonModuleTakeMetric take, void *to)
{
    epicsMutexMustLock(all->lock);
    for (int i = 0; i < all->count; i++)
        giveMetric(all->result[i], take, to);
    epicsMutexUnlock(all->lock);
}
