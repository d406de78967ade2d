/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why access security lets a client not write: the rules of the IOC (asLib.h, pasbase), read from its memory. And which
 * of these rights change although nobody has changed them. One thread at a time.
 */
#ifndef EBPFMON_ACCESSRULES_H
#define EBPFMON_ACCESSRULES_H

#include <stddef.h>
#include <sys/types.h>

#include "host/memory.h"

/* "ASG OPS: RULE(1,WRITE) wants A=1, which is not so: INPA (REC) is not connected or INVALID": for the field ASG of a
 * record, "" for DEFAULT. "level": of the field; 0: any. 0; or -1: there are no rules, or they lie otherwise than in
 * EPICS Base 3.14 to 7.0.8. */
int ebpfMonAccessRulesDescribe(ebpfMonMem *mem, pid_t pid, const char *asg, int level, char *text, size_t size);

/* The rules that refuse now because of their calculation, of each group with inputs. All zero: not looked at yet. */
typedef struct {
    int      isSought;      /* the next is known; 0: there is none */
    uint64_t variable, base; /* where pasbase is, and its value */
    struct accessGroup *group;
    size_t   groups, room;
} ebpfMonAccessState;

/*
 * Tells what has changed since the look before: a rule that allows to write refuses, or allows again, because of its
 * inputs; the rules were read again (asInit). Of a group once a minute at most. "text": as that of Describe.
 */
void ebpfMonAccessStateLook(ebpfMonAccessState *state, pid_t pid, void (*tell)(void *arg, const char *text), void *arg);
void ebpfMonAccessStateClear(ebpfMonAccessState *state);

#endif
