/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The duty to do the work of a thread, which one thread at a time has. The owner is the thread whose work it is. It has
 * the duty while it is awake; while it sleeps, another thread may take it. Nobody waits here: an owner that does not
 * get its duty sleeps on, and who has it wakes the owner.
 */
#ifndef EBPFMON_DUTY_H
#define EBPFMON_DUTY_H

#include <stdint.h>

#include <epicsMutex.h>

typedef struct {
    epicsMutexId lock;     /* protects all that follows */
    int          isTaken;
    int          isWanted; /* the owner did not get it, and is the next who does */
    int          isAsked;  /* another thread did not get it */
    uint64_t     ownerAt;  /* monotonic ns: the owner sleeps until then, if nobody wakes it */
} ebpfMonDuty;

/* The owner has the duty. */
void ebpfMonDutyInit(ebpfMonDuty *duty);
void ebpfMonDutyDestroy(ebpfMonDuty *duty);

/* --- the owner --- */

/* Nonzero: it has its duty. 0: who has it wakes the owner soon. */
int ebpfMonDutyTakeOwn(ebpfMonDuty *duty);
/* It is going to sleep until "at" (monotonic ns). 0: it still has the duty, because another thread could not take it
 * meanwhile; its work may have changed, so it shall look once more. */
int ebpfMonDutyLeaveOwn(ebpfMonDuty *duty, uint64_t at);

/* --- another thread --- */

int ebpfMonDutyTake(ebpfMonDuty *duty); /* nonzero: it has the duty */
int ebpfMonDutyIsWanted(ebpfMonDuty *duty); /* nonzero: leave it soon */
/* "due": monotonic ns at which the owner has work to do; 0: now. Nonzero: the caller must wake the owner. */
int ebpfMonDutyLeave(ebpfMonDuty *duty, uint64_t due);

#endif
