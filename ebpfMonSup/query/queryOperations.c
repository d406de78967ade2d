/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/queryOps.h"
#include "query/queryOperations.h"

/* The queries of the one monitor of this process. They are static because iocsh and record support pass no context. */
static ebpfMonQueries *queries;

static long loadFile(const char *file, char *text, size_t size)
{
    return ebpfMonQueriesLoad(queries, file, text, size);
}

static long runQuery(const char *name, int on)
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
    static const ebpfMonQueryOps ops = { loadFile, runQuery, addList, addResult, addStacks };

    queries = q;
    ebpfMonQueryOpsRegister(&ops);
}
