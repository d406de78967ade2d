/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel for the TCP sockets of a network namespace, by sock_diag(7); private to host/. Any thread. */
#ifndef EBPFMON_SOCKDIAG_H
#define EBPFMON_SOCKDIAG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct inet_diag_msg;
struct inet_diag_sockid;

typedef struct {
    uint8_t  family;     /* AF_INET, AF_INET6; AF_UNSPEC: both */
    uint8_t  extensions; /* INET_DIAG_…, a bit each */
    unsigned states;     /* ebpfMonTcp… of tcpDiag.h, a bit each */
} ebpfMonSockDiagRequest;

/* A socket: "bytes" of it, with its extensions behind it. 0, or -1: ends the reading. */
typedef int (*ebpfMonSockDiagEach)(void *arg, const struct inet_diag_msg *socket, size_t bytes);

/* Opens the namespace of process "pid"; 0: our own. The kernel has so much time for each part of an answer; it takes
 * microseconds. A file for the caller to close, or -1: this kernel does not support it, or we may not enter. */
int ebpfMonSockDiagOpen(pid_t pid, double seconds);

/* 0, or -1: the kernel did not answer, there were too many parts, or "each" ended it. */
int ebpfMonSockDiagRead(int file, const ebpfMonSockDiagRequest *request, ebpfMonSockDiagEach each, void *arg);

/* The socket with these addresses of this family, or one that listens there. The kernel looks into its hash table only.
 * 0, or -1: there is none, or no answer came. */
int ebpfMonSockDiagFind(int file, uint8_t family, const struct inet_diag_sockid *id, struct inet_diag_msg *socket);

/* The same, with extensions (INET_DIAG_…, a bit each): calls "each" for the socket. 1; 0: the kernel says that there
 * is none; -1: it did not answer. */
int ebpfMonSockDiagAsk(int file, uint8_t family, const struct inet_diag_sockid *id, uint8_t extensions,
                       ebpfMonSockDiagEach each, void *arg);

#endif
