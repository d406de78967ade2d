/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What /proc says of a process: identity, display name, and the few lines of status that we need.
 * Every function can fail because the process is gone; none keeps a file open.
 */
#ifndef EBPFMON_PROCINFO_H
#define EBPFMON_PROCINFO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "host/procRead.h"

#define EBPFMON_IOCNAME_SIZE 61

/* Display name of an IOC: its IOC environment variable; IOC_NAME, if IOC is not there or is a path (epics-containers);
 * else the folder of its st.cmd (an argument that ends in .cmd; relative ones are resolved by its working directory);
 * else its command (for an interpreter, the script or -m module). "buf" is always terminated, too long ends in "...".
 * 0; 1: its environment may not be read, so it may have another name; -1: the process is gone. */
int ebpfMonProcIocName(pid_t pid, char *buf, size_t size);

/* The command for people: base name of argv[0]; for python, perl, java…: and the script's or module's.
 * Never empty: falls back to comm. 0, or -1 when the process is gone. */
int ebpfMonProcCommand(pid_t pid, char *buf, size_t size);

/* The value of a variable with which the process was started; "" if it has none, or may not be read. */
void ebpfMonProcReadVariable(pid_t pid, const char *name, char *value, size_t size);

/* The inode of the program file that the process runs; 0: it is gone, or its file system does not answer. */
uint64_t ebpfMonProcProgramInode(pid_t pid);

/* Nonzero: the process runs under valgrind, which would take our breakpoints for the program's own code and end. */
int ebpfMonProcIsUnderValgrind(pid_t pid);

/* "Seccomp:" of /proc/PID/status: 0 none, 1 strict, 2 filter; -1: gone. */
int ebpfMonProcSeccomp(pid_t pid);

/* Our own capabilities, also those that are switched on only while they are used (permitted), one bit each as
 * <linux/capability.h> numbers them. */
uint64_t ebpfMonProcCapabilities(void);

/* One local TCP connection and who owns its client end; addresses and ports in network byte order. */
typedef struct {
    uint32_t addr, saddr;   /* client's, server's, as in struct ebpfMonPeer */
    uint32_t addr6[4], saddr6[4];
    uint16_t port, sport;
    pid_t    pid;           /* owner of the (addr, port) end, 0: not found */
    uid_t    uid;           /* of the socket, known without the owner too */
    char     comm[16];
} ebpfMonProcConn;

/* Established TCP connections that were opened from the network namespace of a process (0: ours):
 * the own port is not a listening port. Each comes with the owner of its own end. Reads /proc/PID/net/tcp, tcp6 and all
 * /proc/PID/fd. Returns their number, -1 on error; *conns is malloc'ed for the caller. */
int ebpfMonProcReadConns(pid_t pid, ebpfMonProcConn **conns);

#define EBPFMON_PORTS_BYTES (65536 / 8)

/* The TCP ports on which any process listens in the network namespace of this process: one bit for each port, in
 * host byte order. 0, or -1 when the process is gone. */
int ebpfMonProcListening(pid_t pid, uint8_t ports[EBPFMON_PORTS_BYTES]);

/* User name of a uid; 0. Without one the number as text; -1. Asks the name service, which may take any time. */
int ebpfMonProcUser(uid_t uid, char *buf, size_t size);

#endif
