/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>

#include <asLib.h>
#include <epicsThread.h>

#include "access/addClient.h"
#include "access/client.h"
#include "access/guard.h"

typedef long (*addClientFunction)(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host);

static addClientFunction baseAddClient; /* set once; one per process, as Base's own */
static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;
static char noHost[1]; /* access security writes the host in small letters */

static void findBase(void *arg)
{
    (void)arg;
    baseAddClient = (addClientFunction)dlsym(RTLD_NEXT, "asAddClient");
}

/* Under a name of its own, so that both can be compared. */
long ebpfMonAddClient(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host);

long ebpfMonAddClient(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host)
{
    const ebpfMonAccessClient *here;
    const char *why;

    epicsThreadOnce(&once, findBase, NULL);
    if (!baseAddClient)
        return S_asLib_noAccess;
    if (!asActive || !member || !ebpfMonGuardHasGroup(member->asgName))
        return baseAddClient(client, member, level, user, host);
    here = ebpfMonAccessClientHere();
    if (here && (here->server == ebpfMonClientCa || ebpfMonGuardAllows(here, &why)))
        return baseAddClient(client, member, level, user, host);
    return baseAddClient(client, member, 1, "", noHost);
}

/* Weak, because a static link has room for one only, and Base's must win. */
long epicsStdCall asAddClient(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host)
    __attribute__((weak, alias("ebpfMonAddClient")));

int ebpfMonAddClientIsInForce(void)
{
    epicsThreadOnce(&once, findBase, NULL);
    return baseAddClient && dlsym(RTLD_DEFAULT, "asAddClient") == (void *)ebpfMonAddClient;
}
