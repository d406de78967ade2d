/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes the client of each connection of the PVA server. pvAccessCPP calls authorization plugins in the thread of the
 * connection, after the client has sent its name, or has chosen to be anonymous, and before it can make a channel
 * (BlockingServerTCPTransportCodec::authenticationCompleted). The plugin does not change the client's credentials.
 */
#include <epicsExport.h>

#ifdef EBPFMON_PVA

#include <exception>

#include <errlog.h>
#include <pv/security.h>

#include "access/client.h"

namespace {

const int PRIORITY = 11640; /* orders the plugins; any number that no other plugin has */

struct NoteClient : public epics::pvAccess::AuthorizationPlugin
{
    virtual void authorize(const std::tr1::shared_ptr<epics::pvAccess::PeerInfo>& peer)
    {
        static thread_local ebpfMonAccessClient client;

        ebpfMonAccessClientFindPva(peer->transport == "pva" ? peer->peer.c_str() : "", &client);
        ebpfMonAccessClientServe(&client);
    }
};

}

static void ebpfMonPvaRegistrar(void)
{
    static bool isRegistered; /* Base may call a registrar more than once */

    if (isRegistered)
        return;
    isRegistered = true;
    try {
        epics::pvAccess::AuthorizationPlugin::shared_pointer plugin(new NoteClient);

        epics::pvAccess::AuthorizationRegistry::plugins().add(PRIORITY, plugin);
    } catch (std::exception& e) {
        errlogSevPrintf(errlogMajor, "ebpfMon: no PVA client may write to the monitor's PVs, because the authorization "
                        "plugin cannot be registered (%s). Clients of CA can write\n", e.what());
    }
}

#else

static void ebpfMonPvaRegistrar(void)
{
    /* built without pvAccess: there is no PVA server */
}

#endif

extern "C" {
epicsExportRegistrar(ebpfMonPvaRegistrar);
}
