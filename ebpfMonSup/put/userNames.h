/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User names by uid, with a bound on how long a name service (LDAP, NIS) can make a caller wait.
 *
 * A thread of its own asks the name service, for that may hang for minutes. Who wants a name waits for it until "deadline"
 * after the uid was asked for first; from then on nobody waits for this uid, and has its number until the name is there.
 * While one call of the name service takes longer than the deadline nobody waits for any uid.
 *
 * So a name service that hangs stops a caller for "deadline" at most, once; one that is slow, for "deadline" at most for
 * each new uid. Names are remembered. One that is older than a minute is asked for again, while the old one is used.
 */
#ifndef EBPFMON_USERNAMES_H
#define EBPFMON_USERNAMES_H

#include <stddef.h>
#include <sys/types.h>

typedef struct ebpfMonUserNames ebpfMonUserNames;

/* Asks the name service. 0, or -1: it has no name for this uid. May take any time. Always fills "buf". */
typedef int (*ebpfMonUserNameReader)(uid_t uid, char *buf, size_t size);

/* "deadline": seconds. NULL without memory. */
ebpfMonUserNames *ebpfMonUserNamesNew(ebpfMonUserNameReader read, double deadline);

/* Ends the thread; it is waited for "seconds". 0, or -1 with a message: the name service hangs, and nothing is freed. */
int ebpfMonUserNamesFree(ebpfMonUserNames *names, double seconds);

/* Nonzero: "buf" has the name, or the number as text if the uid has no name. 0: it is not known yet, and "buf" has the
 * number. Any thread; waits as is said above, so no lock of the event path may be held. */
int ebpfMonUserNamesFind(ebpfMonUserNames *names, uid_t uid, char *buf, size_t size);

#endif
