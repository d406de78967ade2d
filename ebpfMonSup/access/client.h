/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client for which the calling thread works. Base's CA server (rsrv) and pvAccessCPP have one thread for each
 * connection, and each request of the client begins in this thread. So what is known of the client is a variable of the
 * thread, and is freed when the thread ends.
 */
#ifndef EBPFMON_ACCESSCLIENT_H
#define EBPFMON_ACCESSCLIENT_H

#include "access/peerUser.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { ebpfMonClientCa, ebpfMonClientPva } ebpfMonClientServer; /* the server to which the client is
                                                                         * connected */

typedef struct {
    ebpfMonClientServer server;
    ebpfMonPeerUser     user;
} ebpfMonAccessClient;

/* The client of the calling thread; valid as long as the thread serves it. NULL: the thread serves no client, or
 * belongs to a server that we do not know. The first call for a client of CA asks the kernel for its user (peerUser.h):
 * if the client has left by then, nobody knows. */
const ebpfMonAccessClient *ebpfMonAccessClientHere(void);

/* From now on the calling thread serves the PVA client at this "address:port" (numeric IPv4; else the client is
 * unknown). */
void ebpfMonAccessClientNotePva(const char *peer);

#ifdef __cplusplus
}
#endif

#endif
