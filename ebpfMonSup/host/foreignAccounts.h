/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processes do not answer, and what those of each user have cost; private to foreign.c, whose header says by which
 * rules. Under its lock. All times are monotonic ns.
 */
#ifndef EBPFMON_FOREIGNACCOUNTS_H
#define EBPFMON_FOREIGNACCOUNTS_H

#include <stdint.h>
#include <sys/types.h>

typedef struct ebpfMonForeignAccounts ebpfMonForeignAccounts;

ebpfMonForeignAccounts *ebpfMonForeignAccountsNew(void); /* NULL without memory */

/* How long (ns) a job for this process may take that wants so much. 0: it may not begin. */
uint64_t ebpfMonForeignAccountsFindLimit(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t wanted, uint64_t now);

/* A reader of this process is abandoned (pid 0: nobody is to blame), and sets it aside. Returns the user, for …Return, when
 * it has come back. */
uid_t ebpfMonForeignAccountsAbandon(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
void ebpfMonForeignAccountsReturn(ebpfMonForeignAccounts *accounts, pid_t pid, uid_t uid, uint64_t now);

void ebpfMonForeignAccountsCharge(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t ns, uint64_t now);
void ebpfMonForeignAccountsTrust(ebpfMonForeignAccounts *accounts, pid_t pid);

int ebpfMonForeignAccountsIsAside(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
int ebpfMonForeignAccountsIsCharged(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
unsigned ebpfMonForeignAccountsCountStuck(const ebpfMonForeignAccounts *accounts);

#endif
