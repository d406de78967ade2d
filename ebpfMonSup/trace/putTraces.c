/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "trace/putTraces.h"
#include "trace/traceSpans.h"

#define CHAINS 8192 /* that began with a put; by hash, the newest of each */

struct ebpfMonPutTraces {
    uint64_t     salt;
    epicsMutexId lock; /* guards the table */
    struct {
        ebpfMonChainId chain;
        uint8_t        id[EBPFMON_TRACE_ID];
    } begun[CHAINS];
};

ebpfMonPutTraces *ebpfMonPutTracesNew(uint64_t salt)
{
    ebpfMonPutTraces *traces = calloc(1, sizeof(*traces));

    if (!traces)
        return NULL;
    traces->salt = salt;
    traces->lock = epicsMutexMustCreate();
    return traces;
}

void ebpfMonPutTracesFree(ebpfMonPutTraces *traces)
{
    if (!traces)
        return;
    epicsMutexDestroy(traces->lock);
    free(traces);
}

static int hasId(const uint8_t id[EBPFMON_TRACE_ID])
{
    static const uint8_t none[EBPFMON_TRACE_ID];

    return memcmp(id, none, sizeof(none)) != 0;
}

/* The id of what began this chain. */
static void findId(const ebpfMonPutTraces *traces, const ebpfMonChainId *chain, uint8_t id[EBPFMON_TRACE_ID])
{
    uint32_t at = ebpfMonChainIdHash(chain) % CHAINS;

    if (ebpfMonChainIdIsSame(&traces->begun[at].chain, chain))
        memcpy(id, traces->begun[at].id, EBPFMON_TRACE_ID);
    else
        ebpfMonChainGetTraceId(traces->salt, chain, id);
}

void ebpfMonPutTracesSetId(ebpfMonPutTraces *traces, ebpfMonPut *put)
{
    const ebpfMonChainId *source = put->through == ebpfMonByCaLink ? &put->linkChain : &put->source;
    int isSourceKnown = source->iocId && !(put->through == ebpfMonByCaLink && put->isLinkUnsure);
    uint32_t at = ebpfMonChainIdHash(&put->chain) % CHAINS;

    epicsMutexMustLock(traces->lock);
    if (isSourceKnown)
        findId(traces, source, put->trace);
    else if (hasId(put->messageTrace))
        memcpy(put->trace, put->messageTrace, sizeof(put->trace));
    else if (put->chain.iocId)
        ebpfMonChainGetTraceId(traces->salt, &put->chain, put->trace);
    if (put->chain.iocId && hasId(put->trace)) {
        traces->begun[at].chain = put->chain;
        memcpy(traces->begun[at].id, put->trace, sizeof(put->trace));
    }
    epicsMutexUnlock(traces->lock);
}
