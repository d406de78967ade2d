/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges which records are guarded, and which clients may write to them (guard.h). One per process, because Base
 * calls the guard without a context. */
#ifndef EBPFMON_JUDGE_H
#define EBPFMON_JUDGE_H

#include "access/client.h"
#include "access/operators.h"

#define EBPFMON_ASG    "EBPFMON"
#define EBPFMON_ASG_RO "EBPFMON_RO"

/* Makes root and the user of this process the operators. Call this once, before a server starts. */
void ebpfMonJudgeInit(void);

/* Nonzero: the operators cannot be changed from now on. 0: they can. The shell's thread. */
void ebpfMonJudgeFix(int fixed);

/* The operators, for a change. NULL: they are fixed. The shell's thread. */
ebpfMonOperators *ebpfMonJudgeSetOperators(void);
const ebpfMonOperators *ebpfMonJudgeGetOperators(void); /* any thread after they are fixed */

/* Nonzero: the client may write. 0: *why is a literal that says why not. Any thread. */
int ebpfMonJudgeAllows(const ebpfMonAccessClient *client, const char **why);

/* Nonzero: records of this access security group are guarded. Any thread. */
int ebpfMonJudgeHasGroup(const char *asg);

#endif
