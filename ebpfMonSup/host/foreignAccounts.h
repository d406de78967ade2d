/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processes do not answer, and what the processes of each user have cost; private to foreign.c. foreign.h says
 * the rules. Call these functions under the lock of foreign.c. All times are monotonic ns.
 */
#ifndef EBPFMON_FOREIGNACCOUNTS_H
#define EBPFMON_FOREIGNACCOUNTS_H

#include <stdint.h>
#include <sys/types.h>

typedef struct ebpfMonForeignAccounts ebpfMonForeignAccounts;

ebpfMonForeignAccounts *ebpfMonForeignAccountsNew(void); /* NULL without memory */

/* How long (ns) a job for this process may take, if it asks for "wanted" ns. 0: it may not begin. */
uint64_t ebpfMonForeignAccountsFindLimit(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t wanted, uint64_t now);

/* A reader of this process is abandoned (pid 0: no process is to blame): sets the process aside. Returns the user; give
 * it to …Return when the reader has come back. */
uid_t ebpfMonForeignAccountsAbandon(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
void ebpfMonForeignAccountsReturn(ebpfMonForeignAccounts *accounts, pid_t pid, uid_t uid, uint64_t now);

void ebpfMonForeignAccountsCharge(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t ns, uint64_t now);
void ebpfMonForeignAccountsChargeCpu(ebpfMonForeignAccounts *accounts, uid_t uid, uint64_t ns, uint64_t now);
void ebpfMonForeignAccountsTrust(ebpfMonForeignAccounts *accounts, pid_t pid);

int ebpfMonForeignAccountsIsAside(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
int ebpfMonForeignAccountsIsCharged(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now);
int ebpfMonForeignAccountsIsUserCharged(ebpfMonForeignAccounts *accounts, uid_t uid, uint64_t now);
unsigned ebpfMonForeignAccountsCountStuck(const ebpfMonForeignAccounts *accounts);

#endif
