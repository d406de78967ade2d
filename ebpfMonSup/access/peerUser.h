/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which user of this host is at the other end of a connection to us. The answer comes from the kernel: the owner of the
 * client's socket, as a uid of our user namespace. What the client claims, and what it is called in a user namespace of
 * its own (unshare -Ur), does not matter.
 */
#ifndef EBPFMON_PEERUSER_H
#define EBPFMON_PEERUSER_H

#include <netinet/in.h>
#include <sys/types.h>

typedef enum {
    ebpfMonPeerUnknown, /* "why" says why; not to be trusted with anything */
    ebpfMonPeerLocal,   /* a socket of this network namespace; "uid" opened it */
    ebpfMonPeerRemote   /* another host, or another network namespace of this one */
} ebpfMonPeerKind;

typedef struct {
    ebpfMonPeerKind    kind;
    struct sockaddr_in peer, here; /* the client's end and ours; here.sin_port 0: not found */
    uid_t              uid;
    const char        *why;        /* a literal */
} ebpfMonPeerUser;

/*
 * "peer": address and port of a client whose connection this process has accepted, as one of its servers has them. No
 * lock, any thread; no name service. It looks through our own file descriptors and asks the kernel for one socket.
 *
 * "Local" is certain: while our own socket is still established, its other end is the one socket with the reverse
 * addresses that is established and open. A client that has closed its socket, or shut it down, is unknown: the kernel
 * calls a socket without an owner root's (sock_i_uid, net/core/sock.c).
 */
void ebpfMonPeerUserFind(const struct sockaddr_in *peer, ebpfMonPeerUser *user);

#endif
