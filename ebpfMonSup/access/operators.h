/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operators: who may write to the monitor's own PVs. Users of this host by uid, other hosts by address. No lock:
 * the shell sets them before iocInit, and afterwards any thread may read them.
 */
#ifndef EBPFMON_OPERATORS_H
#define EBPFMON_OPERATORS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "access/client.h"

#define EBPFMON_OPERATORS_MAX 64 /* users; and as many hosts */

typedef struct {
    uint32_t addr, addr6[4]; /* as those of struct ebpfMonPeer */
} ebpfMonOperatorHost;

typedef struct {
    uid_t    uid[EBPFMON_OPERATORS_MAX];
    unsigned uidCount;
    ebpfMonOperatorHost host[EBPFMON_OPERATORS_MAX];
    unsigned hostCount;
} ebpfMonOperators;

/* The default: root and the effective user of this process, and no other host. */
void ebpfMonOperatorsInit(ebpfMonOperators *operators);

/* Replaces the users. "users": names or uids, separated by blanks or commas. Asks the name service, which may take
 * any time. The shell's thread only. 0, or -1: nothing is changed, and "text" says what is wrong and what to do. */
int ebpfMonOperatorsSetUsers(ebpfMonOperators *operators, const char *users, char *text, size_t size);

/* Replaces the hosts. "hosts": numeric addresses, separated in the same way. Names are refused: a name server that lies
 * could make anybody an operator; link-local addresses, too: each network has its own. The shell's thread only. 0 or
 * -1, as above. */
int ebpfMonOperatorsSetHosts(ebpfMonOperators *operators, const char *hosts, char *text, size_t size);

/* The addresses: as those of struct ebpfMonPeer. */
int ebpfMonOperatorsHasUser(const ebpfMonOperators *operators, uid_t uid);
int ebpfMonOperatorsHasHost(const ebpfMonOperators *operators, uint32_t addr, const uint32_t addr6[4]);

/* Writes for example "users root, 1000; other hosts none". Asks the name service, which may take any time. The
 * shell's thread only. */
void ebpfMonOperatorsFormat(const ebpfMonOperators *operators, char *buf, size_t size);

/* --- judging ---
 *
 * Judges which records are guarded, and which clients may write to them (guard.h). One per process, because Base
 * calls the guard without a context.
 */

#define EBPFMON_ASG    "EBPFMON"
#define EBPFMON_ASG_RO "EBPFMON_RO"

/* Makes root and the user of this process the operators. Call this once, before a server starts. */
void ebpfMonJudgeInit(void);

/* Nonzero: the operators cannot be changed from now on. 0: they can. The shell's thread. */
void ebpfMonJudgeFix(int fixed);

/* The operators, for a change. NULL: they are fixed. The shell's thread. */
ebpfMonOperators *ebpfMonJudgeSetOperators(void);
const ebpfMonOperators *ebpfMonJudgeGetOperators(void); /* any thread after they are fixed */

/* Nonzero: the client may write. 0: *why is a literal that says why not. Any thread. */
int ebpfMonJudgeAllows(const ebpfMonAccessClient *client, const char **why);

/* Nonzero: records of this access security group are guarded. Any thread. */
int ebpfMonJudgeHasGroup(const char *asg);

#endif
