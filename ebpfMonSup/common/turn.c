/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/turn.h"

void ebpfMonTurnInit(ebpfMonTurn *turn)
{
    *turn = (ebpfMonTurn){ .lock = epicsMutexMustCreate(), .isTaken = 1 };
}

void ebpfMonTurnDestroy(ebpfMonTurn *turn)
{
    epicsMutexDestroy(turn->lock);
}

/* Nonzero: the caller has it now. */
static int takeTurnAs(ebpfMonTurn *turn, int isOwner)
{
    int isFree;

    epicsMutexMustLock(turn->lock);
    isFree = !turn->isTaken;
    turn->isTaken = 1;
    turn->isWanted |= isOwner && !isFree;
    turn->isAsked |= !isOwner && !isFree;
    epicsMutexUnlock(turn->lock);
    return isFree;
}

int ebpfMonTurnTakeOwn(ebpfMonTurn *turn)
{
    return takeTurnAs(turn, 1);
}

int ebpfMonTurnTake(ebpfMonTurn *turn)
{
    return takeTurnAs(turn, 0);
}

int ebpfMonTurnLeaveOwn(ebpfMonTurn *turn, uint64_t at)
{
    int isLeft;

    epicsMutexMustLock(turn->lock);
    isLeft = !turn->isAsked;
    turn->isTaken = turn->isAsked;
    turn->isAsked = 0;
    turn->ownerAt = at;
    epicsMutexUnlock(turn->lock);
    return isLeft;
}

int ebpfMonTurnIsWanted(ebpfMonTurn *turn)
{
    int isWanted;

    epicsMutexMustLock(turn->lock);
    isWanted = turn->isWanted;
    epicsMutexUnlock(turn->lock);
    return isWanted;
}

int ebpfMonTurnLeave(ebpfMonTurn *turn, uint64_t due)
{
    int mustWake;

    epicsMutexMustLock(turn->lock);
    mustWake = turn->isWanted || due < turn->ownerAt;
    turn->isTaken = turn->isWanted = 0;
    epicsMutexUnlock(turn->lock);
    return mustWake;
}
