/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "access/judge.h"

/* One per process: see guard.h. */
static struct {
    ebpfMonOperators operators;
    int              isFixed;
} judge;

void ebpfMonJudgeInit(void)
{
    ebpfMonOperatorsInit(&judge.operators);
}

void ebpfMonJudgeFix(int fixed)
{
    judge.isFixed = fixed;
}

ebpfMonOperators *ebpfMonJudgeSetOperators(void)
{
    return judge.isFixed ? NULL : &judge.operators;
}

const ebpfMonOperators *ebpfMonJudgeGetOperators(void)
{
    return &judge.operators;
}

int ebpfMonJudgeHasGroup(const char *asg)
{
    return asg && (strcmp(asg, EBPFMON_ASG) == 0 || strcmp(asg, EBPFMON_ASG_RO) == 0);
}

int ebpfMonJudgeAllows(const ebpfMonAccessClient *client, const char **why)
{
    const ebpfMonPeerUser *user = &client->user;

    switch (user->kind) {
    case ebpfMonPeerLocal:
        *why = "not an operator: see ebpfMonOperators";
        return ebpfMonOperatorsHasUser(&judge.operators, user->uid);
    case ebpfMonPeerRemote:
        *why = "not a host of operators: see ebpfMonOperatorHosts";
        return ebpfMonOperatorsHasHost(&judge.operators, user->peer.sin_addr.s_addr);
    default:
        *why = user->why;
        return 0;
    }
}
