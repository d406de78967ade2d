/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/queryOps.h"
#include "query/queryOperations.h"

/* Of the one monitor of this process: iocsh and record support have no context to hand over. */
static ebpfMonQueries *queries;

static long load(const char *file, char *text, size_t size)
{
    return ebpfMonQueriesLoad(queries, file, text, size);
}

static long run(const char *name, int on)
{
    return ebpfMonQueriesRun(queries, name, on);
}

static void addList(ebpfMonTextReport *report)
{
    ebpfMonQueriesAddList(queries, report);
}

static long addResult(ebpfMonTextReport *report, const char *name)
{
    return ebpfMonQueriesAddResult(queries, report, name);
}

static long addStacks(ebpfMonTextReport *report, const char *name)
{
    return ebpfMonQueriesAddStacks(queries, report, name);
}

void ebpfMonQueryOperationsRegister(ebpfMonQueries *q)
{
    static const ebpfMonQueryOps ops = { load, run, addList, addResult, addStacks };

    queries = q;
    ebpfMonQueryOpsRegister(&ops);
}
