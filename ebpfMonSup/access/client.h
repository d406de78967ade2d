/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client for which the calling thread works. Base's CA server (rsrv) and pvAccessCPP have one thread for each
 * connection, and each request of the client begins in this thread. pvxs has one thread for all, and says for whom it
 * makes a put. So what is known of the client is a variable of the thread.
 */
#ifndef EBPFMON_ACCESSCLIENT_H
#define EBPFMON_ACCESSCLIENT_H

#include <sys/types.h>

#ifdef __cplusplus
#define _Static_assert static_assert /* the kernel part is C */
#endif
#include "ebpfMonEvent.h"

/* --- users of peers ---
 *
 * Finds the user of this host at the other end of a connection to us. The kernel tells the owner of the client's
 * socket, as a uid of our user namespace. The name that the client claims does not matter, and neither does its uid in
 * a user namespace of its own (unshare -Ur). */

typedef enum {
    ebpfMonPeerUnknown, /* "why" says why the user is not known. Such a client may do nothing */
    ebpfMonPeerLocal,   /* a process of this network namespace; the user "uid" opened its socket */
    ebpfMonPeerRemote   /* another host, or another network namespace of this one */
} ebpfMonPeerKind;

typedef struct {
    ebpfMonPeerKind    kind;
    struct ebpfMonPeer connection; /* sport 0: our end was not found */
    uid_t              uid;
    const char        *why;        /* a literal */
} ebpfMonPeerUser;

/* Opens two sockets, so that no file is needed later. Before any other function; the second call does nothing. */
void ebpfMonPeerUserInit(void);

/*
 * "peer": address and port of a client; this process has accepted its connection. Sets *user; it never fails, but
 * the user may be unknown. Any thread, no lock, no name service: it looks through our own file descriptors, and asks
 * the kernel for one socket (0.2 s at most for each of our ends).
 *
 * ebpfMonPeerLocal is certain: while our own socket is established, its other end is the one socket with the reverse
 * addresses that is open and established. If the client has closed its socket or shut it down, the user is unknown: for
 * a socket without an owner the kernel would say root (sock_i_uid, net/core/sock.c).
 */
void ebpfMonPeerUserFind(const struct ebpfMonPeer *peer, ebpfMonPeerUser *user);

/* --- clients --- */

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
 * belongs to a server that we do not know. The first call for a client of CA asks the kernel for its user (client.h):
 * if the client has left by then, nobody knows. */
const ebpfMonAccessClient *ebpfMonAccessClientHere(void);

/* Sets *client to the one of PVA at this "address:port" or "[address]:port". If these are no numbers, it is unknown. */
void ebpfMonAccessClientFindPva(const char *peer, ebpfMonAccessClient *client);

/* From now on the calling thread serves this client of PVA, which stays where it is. NULL: none. */
void ebpfMonAccessClientServe(ebpfMonAccessClient *client);

#ifdef __cplusplus
}
#endif

#endif
