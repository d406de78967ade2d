/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <epicsMutex.h>
#include <epicsAtomic.h>

#include "common/text.h"
#include "model/audits.h"

/* --- losses --- */

void ebpfMonLossesAdd(ebpfMonLosses *losses, ebpfMonLoss kind)
{
    epicsAtomicIncrSizeT(&losses->count[kind]);
}

uint64_t ebpfMonLossesGet(const ebpfMonLosses *losses, ebpfMonLoss kind)
{
    return epicsAtomicGetSizeT(&losses->count[kind]);
}

/* --- audits --- */

struct ebpfMonAudits {
    epicsMutexId lock;
    ebpfMonAuditResults found; /* under the lock */
};

ebpfMonAudits *ebpfMonAuditsNew(void)
{
    ebpfMonAudits *audits = calloc(1, sizeof(*audits));

    if (audits)
        audits->lock = epicsMutexMustCreate();
    return audits;
}

void ebpfMonAuditsFree(ebpfMonAudits *audits)
{
    if (!audits)
        return;
    epicsMutexDestroy(audits->lock);
    free(audits);
}

void ebpfMonAuditsAdd(ebpfMonAudits *audits, ebpfMonAudit kind, uint64_t count, const char *about)
{
    epicsMutexMustLock(audits->lock);
    audits->found.count[kind] += count;
    audits->found.lastKind = kind;
    ebpfMonTextCopy(audits->found.last, sizeof(audits->found.last), about);
    epicsTimeGetCurrent(&audits->found.time);
    epicsMutexUnlock(audits->lock);
}

void ebpfMonAuditsGet(ebpfMonAudits *audits, ebpfMonAuditResults *results)
{
    epicsMutexMustLock(audits->lock);
    *results = audits->found;
    epicsMutexUnlock(audits->lock);
}

void ebpfMonAuditsReset(ebpfMonAudits *audits)
{
    epicsMutexMustLock(audits->lock);
    memset(&audits->found, 0, sizeof(audits->found));
    epicsMutexUnlock(audits->lock);
}

const char *ebpfMonAuditName(ebpfMonAudit kind)
{
    switch (kind) {
    case ebpfMonAuditPutNotInside: return "the IOC answered a put that was not seen in it";
    case ebpfMonAuditPutNumber:    return "a put of this IOC was not seen";
    case ebpfMonAuditProcessings:  return "two counts of processings differ";
    case ebpfMonAuditKinds:        break;
    }
    return "";
}
