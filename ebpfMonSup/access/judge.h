/* SPDX-License-Identifier: BSD-3-Clause */
/* Which records are guarded, and which clients may write to them (guard.h). One per process, as Base calls it without a
 * context. */
#ifndef EBPFMON_JUDGE_H
#define EBPFMON_JUDGE_H

#include "access/client.h"
#include "access/operators.h"

#define EBPFMON_ASG    "EBPFMON"
#define EBPFMON_ASG_RO "EBPFMON_RO"

/* The operators are root and the user of this IOC. */
void ebpfMonJudgeInit(void);

/* Nonzero: from now on the operators are fixed. */
void ebpfMonJudgeFix(int fixed);

/* The operators, to be changed while they are not fixed; then NULL. The shell's thread. */
ebpfMonOperators *ebpfMonJudgeSetOperators(void);
const ebpfMonOperators *ebpfMonJudgeGetOperators(void);

/* Nonzero: the client may write. 0: *why is a literal that says why not. Any thread. */
int ebpfMonJudgeAllows(const ebpfMonAccessClient *client, const char **why);

/* Whether records of this group of access security are guarded. */
int ebpfMonJudgeHasGroup(const char *asg);

#endif
