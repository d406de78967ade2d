/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>

#include <epicsThread.h>

#include "access/addClient.h"
#include "access/client.h"
#include "access/judge.h"

typedef long (*addClientFunction)(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host);

static addClientFunction baseAddClient; /* set once. One per process, as the function itself */
static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

static void findBase(void *arg)
{
    (void)arg;
    baseAddClient = (addClientFunction)dlsym(RTLD_NEXT, "asAddClient");
}

long ebpfMonAddClientNobody(ASCLIENTPVT *client, ASMEMBERPVT member)
{
    static char noHost[1]; /* not a literal: asAddClient writes the host in small letters, into this memory */

    epicsThreadOnce(&once, findBase, NULL);
    return baseAddClient ? baseAddClient(client, member, 1, "", noHost) : S_asLib_noAccess;
}

/* Our asAddClient has a second name, so ebpfMonAddClientIsInForce can compare it with the one that servers call. */
long ebpfMonAddClient(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host);

long ebpfMonAddClient(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host)
{
    const ebpfMonAccessClient *here;
    const char *why;

    epicsThreadOnce(&once, findBase, NULL);
    if (!baseAddClient)
        return S_asLib_noAccess;
    if (!asActive || !member || !ebpfMonJudgeHasGroup(member->asgName))
        return baseAddClient(client, member, level, user, host);
    here = ebpfMonAccessClientHere();
    if (here && (here->server == ebpfMonClientCa || ebpfMonJudgeAllows(here, &why)))
        return baseAddClient(client, member, level, user, host);
    return ebpfMonAddClientNobody(client, member);
}

/* Weak, because a program with static libraries can have only one asAddClient, and then Base's must be it. */
long epicsStdCall asAddClient(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host)
    __attribute__((weak, alias("ebpfMonAddClient")));

int ebpfMonAddClientIsInForce(void)
{
    epicsThreadOnce(&once, findBase, NULL);
    return baseAddClient && dlsym(RTLD_DEFAULT, "asAddClient") == (void *)ebpfMonAddClient;
}
