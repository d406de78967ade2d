/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client that the calling thread works for. Base's CA server (rsrv) and pvAccessCPP have one thread for each
 * connection, and all that the client requests begins in it: so what is known of the client is a variable of the
 * thread. It ends with the thread.
 */
#ifndef EBPFMON_ACCESSCLIENT_H
#define EBPFMON_ACCESSCLIENT_H

#include "access/peerUser.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { ebpfMonClientCa, ebpfMonClientPva } ebpfMonClientServer; /* the server that it speaks to */

typedef struct {
    ebpfMonClientServer server;
    ebpfMonPeerUser     user;
} ebpfMonAccessClient;

/* NULL: the thread serves no client, or is of a server that we do not know. The first call in a thread asks the kernel
 * (peerUser.h), so it should come while the client is there. */
const ebpfMonAccessClient *ebpfMonAccessClientHere(void);

/* The calling thread serves the PVA client at this "address:port" from now on. */
void ebpfMonAccessClientNotePva(const char *peer);

#ifdef __cplusplus
}
#endif

#endif
