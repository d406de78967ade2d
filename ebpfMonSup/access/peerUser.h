/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the user of this host at the other end of a connection to us. The kernel tells the owner of the client's
 * socket, as a uid of our user namespace. The name that the client claims does not matter, and neither does its uid in
 * a user namespace of its own (unshare -Ur).
 */
#ifndef EBPFMON_PEERUSER_H
#define EBPFMON_PEERUSER_H

#include <netinet/in.h>
#include <sys/types.h>

typedef enum {
    ebpfMonPeerUnknown, /* "why" says why the user is not known. Such a client may do nothing */
    ebpfMonPeerLocal,   /* a process of this network namespace; the user "uid" opened its socket */
    ebpfMonPeerRemote   /* another host, or another network namespace of this one */
} ebpfMonPeerKind;

typedef struct {
    ebpfMonPeerKind    kind;
    struct sockaddr_in peer, here; /* the client's end and ours; here.sin_port 0: not found */
    uid_t              uid;
    const char        *why;        /* a literal */
} ebpfMonPeerUser;

/*
 * "peer": the address and port of a client; this process has accepted its connection. Sets *user; it never fails, but
 * the user may be unknown. Any thread, no lock, no name service: it looks through our own file descriptors, and asks
 * the kernel for one socket (0.2 s at most for each of our ends).
 *
 * ebpfMonPeerLocal is certain: while our own socket is established, its other end is the one socket with the reverse
 * addresses that is open and established. If the client has closed its socket or shut it down, the user is unknown: for
 * a socket without an owner the kernel would say root (sock_i_uid, net/core/sock.c).
 */
void ebpfMonPeerUserFind(const struct sockaddr_in *peer, ebpfMonPeerUser *user);

#endif
