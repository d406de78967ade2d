/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may write to the monitor's own PVs: users of this host by uid, other hosts by address. No lock: the shell sets it
 * before iocInit, and after that it is read only.
 */
#ifndef EBPFMON_OPERATORS_H
#define EBPFMON_OPERATORS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EBPFMON_OPERATORS_MAX 64 /* users; and as many hosts */

typedef struct {
    uid_t    uid[EBPFMON_OPERATORS_MAX];
    unsigned uidCount;
    uint32_t host[EBPFMON_OPERATORS_MAX]; /* network byte order */
    unsigned hostCount;
} ebpfMonOperators;

/* As it is out of the box: root and the user that this process runs as; no other host. */
void ebpfMonOperatorsInit(ebpfMonOperators *operators);

/* Replaces the users: names or uids, separated by blanks or commas. Asks the name service, which may take any time: the
 * shell's thread only. 0, or -1: nothing is changed, and "text" says what is wrong and what to do. */
int ebpfMonOperatorsSetUsers(ebpfMonOperators *operators, const char *users, char *text, size_t size);

/* Replaces the hosts: numeric IPv4 addresses, separated likewise. No names: whoever answers for a name could make
 * himself an operator. 0 or -1, as above. */
int ebpfMonOperatorsSetHosts(ebpfMonOperators *operators, const char *hosts, char *text, size_t size);

int ebpfMonOperatorsHasUser(const ebpfMonOperators *operators, uid_t uid);
int ebpfMonOperatorsHasHost(const ebpfMonOperators *operators, uint32_t addr);

/* "users root, 1000; other hosts: none" */
void ebpfMonOperatorsFormat(const ebpfMonOperators *operators, char *buf, size_t size);

#endif
