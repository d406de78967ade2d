/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/duty.h"

void ebpfMonDutyInit(ebpfMonDuty *duty)
{
    *duty = (ebpfMonDuty){ .lock = epicsMutexMustCreate(), .isTaken = 1 };
}

void ebpfMonDutyDestroy(ebpfMonDuty *duty)
{
    epicsMutexDestroy(duty->lock);
}

int ebpfMonDutyTakeOwn(ebpfMonDuty *duty)
{
    int isFree;

    epicsMutexMustLock(duty->lock);
    isFree = !duty->isTaken;
    duty->isTaken = 1;
    duty->isWanted = !isFree;
    epicsMutexUnlock(duty->lock);
    return isFree;
}

int ebpfMonDutyTake(ebpfMonDuty *duty)
{
    int isFree;

    epicsMutexMustLock(duty->lock);
    isFree = !duty->isTaken && !duty->isWanted; /* else the owner might wait for ever, if it is not quick enough */
    duty->isTaken |= isFree;
    duty->isAsked |= !isFree;
    epicsMutexUnlock(duty->lock);
    return isFree;
}

int ebpfMonDutyLeaveOwn(ebpfMonDuty *duty, uint64_t at)
{
    int isLeft;

    epicsMutexMustLock(duty->lock);
    isLeft = !duty->isAsked;
    duty->isTaken = duty->isAsked;
    duty->isAsked = 0;
    duty->ownerAt = at;
    epicsMutexUnlock(duty->lock);
    return isLeft;
}

int ebpfMonDutyIsWanted(ebpfMonDuty *duty)
{
    int isWanted;

    epicsMutexMustLock(duty->lock);
    isWanted = duty->isWanted;
    epicsMutexUnlock(duty->lock);
    return isWanted;
}

int ebpfMonDutyLeave(ebpfMonDuty *duty, uint64_t due)
{
    int mustWake;

    epicsMutexMustLock(duty->lock);
    mustWake = duty->isWanted || due < duty->ownerAt;
    duty->isTaken = 0;
    epicsMutexUnlock(duty->lock);
    return mustWake;
}
