/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes for each connection of the PVA server which client it is of. pvAccessCPP calls authorization plugins in the
 * thread of the connection, when a client has said who it is (BlockingServerTCPTransportCodec::authenticationCompleted),
 * also one that stays anonymous, and before it can have a channel. The plugin changes nothing of what the client says.
 */
#include <epicsExport.h>

#ifdef EBPFMON_PVA

#include <exception>

#include <errlog.h>
#include <pv/security.h>

#include "access/client.h"

namespace {

const int PRIORITY = 11640; /* among the plugins of a site: any number that nobody else has */

struct NoteClient : public epics::pvAccess::AuthorizationPlugin
{
    virtual void authorize(const std::tr1::shared_ptr<epics::pvAccess::PeerInfo>& peer)
    {
        ebpfMonAccessClientNotePva(peer->transport == "pva" ? peer->peer.c_str() : "");
    }
};

}

static void ebpfMonPvaRegistrar(void)
{
    static bool isRegistered; /* a registrar may run more than once */

    if (isRegistered)
        return;
    isRegistered = true;
    try {
        epics::pvAccess::AuthorizationPlugin::shared_pointer plugin(new NoteClient);

        epics::pvAccess::AuthorizationRegistry::plugins().add(PRIORITY, plugin);
    } catch (std::exception& e) {
        errlogSevPrintf(errlogMajor, "ebpfMon: cannot tell PVA clients apart (%s): none of them may write to the "
                        "monitor's PVs\n", e.what());
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
