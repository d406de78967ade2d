/* SPDX-License-Identifier: BSD-3-Clause */
#include "query/queryOperations.h"

static long loadFile(void *arg, const char *file, char *text, size_t size)
{
    return ebpfMonQueriesLoad(arg, file, text, size);
}

static long runQuery(void *arg, const char *name, int on)
{
    return ebpfMonQueriesRun(arg, name, on);
}

static void addList(void *arg, ebpfMonTextReport *report)
{
    ebpfMonQueriesAddList(arg, report);
}

static long addResult(void *arg, ebpfMonTextReport *report, const char *name)
{
    return ebpfMonQueriesAddResult(arg, report, name);
}

static long addStacks(void *arg, ebpfMonTextReport *report, const char *name)
{
    return ebpfMonQueriesAddStacks(arg, report, name);
}

void ebpfMonQueryOperationsFill(ebpfMonQueries *queries, ebpfMonQueryOps *ops)
{
    *ops = (ebpfMonQueryOps){ queries, loadFile, runQuery, addList, addResult, addStacks };
}
