/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The right to do the work of a thread, one thread at a time. The owner is the thread whose work it is. It has the turn
 * while it is awake; while it sleeps, another thread may take it. Nobody waits here: an owner that does not get its
 * turn sleeps on, and who has the turn wakes it.
 */
#ifndef EBPFMON_TURN_H
#define EBPFMON_TURN_H

#include <stdint.h>

#include <epicsMutex.h>

typedef struct {
    epicsMutexId lock;     /* protects all that follows */
    int          isTaken;
    int          isWanted; /* the owner did not get it */
    int          isAsked;  /* another thread did not get it */
    uint64_t     ownerAt;  /* monotonic ns: the owner sleeps until then, if nobody wakes it */
} ebpfMonTurn;

/* The owner has the turn. */
void ebpfMonTurnInit(ebpfMonTurn *turn);
void ebpfMonTurnDestroy(ebpfMonTurn *turn);

/* --- the owner --- */

/* Nonzero: it has its turn. 0: who has it wakes the owner soon. */
int ebpfMonTurnTakeOwn(ebpfMonTurn *turn);
/* It is going to sleep until "at" (monotonic ns). 0: it still has the turn, because another thread could not take it
 * meanwhile; its work may have changed, so it shall look once more. */
int ebpfMonTurnLeaveOwn(ebpfMonTurn *turn, uint64_t at);

/* --- another thread --- */

int ebpfMonTurnTake(ebpfMonTurn *turn); /* nonzero: it has the turn */
int ebpfMonTurnIsWanted(ebpfMonTurn *turn); /* nonzero: leave it soon */
/* "due": monotonic ns at which the owner has work to do; 0: now. Nonzero: the caller must wake the owner. */
int ebpfMonTurnLeave(ebpfMonTurn *turn, uint64_t due);

#endif
