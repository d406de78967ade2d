/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who pays for a process, or for a network namespace. A user with subordinate ids (subuid(5)) can run processes with
 * thousands of user ids, in a user namespace that he has made. So who made a user namespace pays for all that is in it;
 * but not root and the users of services, who make containers for others. Any thread.
 */
#ifndef EBPFMON_PROCPAYER_H
#define EBPFMON_PROCPAYER_H

#include <sys/types.h>

/* Who pays for a process. If its namespace cannot be looked at, its own user; 0 if it is gone. */
uid_t ebpfMonProcPayer(pid_t pid);

/* Who pays for the network namespace in which a process is: 0, if it is one that only root can have made. */
uid_t ebpfMonProcNetnsPayer(pid_t pid);

#endif
