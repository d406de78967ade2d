/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "put/finishedPut.h"

void ebpfMonPutSummaryMake(const ebpfMonPut *put, const ebpfMonMessageKey *key, ebpfMonPutSummary *summary)
{
    memcpy(summary->pv, put->pv, sizeof(summary->pv));
    memcpy(summary->who, put->who, sizeof(summary->who));
    memcpy(summary->origin, put->origin, sizeof(summary->origin));
    memcpy(summary->user, put->user, sizeof(summary->user));
    memcpy(summary->peer, put->peer, sizeof(summary->peer));
    memcpy(summary->server, put->server, sizeof(summary->server));
    memcpy(summary->command, put->command, sizeof(summary->command));
    memcpy(summary->linkIoc, put->linkIoc, sizeof(summary->linkIoc));
    summary->pid = put->isUnsure ? 0 : put->peerPid;
    summary->linkChain = put->linkChain;
    summary->through = put->through;
    summary->key = *key;
}
