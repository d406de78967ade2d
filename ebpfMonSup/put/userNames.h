/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User names by uid. A name service (LDAP, NIS) may hang for minutes; here is a bound on how long a caller waits for
 * it.
 *
 * A thread of its own asks the name service. A caller waits for a name until "deadline" after this uid was asked for
 * first. After that nobody waits for this uid any more: callers get its number until the name is there. While one call
 * of the name service takes longer than the deadline, nobody waits for any uid.
 *
 * So a name service that hangs stops a caller once, for "deadline" at most. One that is slow stops it for "deadline" at
 * most for each new uid. Names are remembered. One that is older than a minute is asked for again, and the old one is
 * used meanwhile.
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

/* Ends the thread; it is waited for "seconds". 0, or -1 with a message: the name service hangs, and nothing is
 * freed. */
int ebpfMonUserNamesFree(ebpfMonUserNames *names, double seconds);

/* Nonzero: "buf" has the name, or the number as text if the uid has no name. 0: it is not known yet, and "buf" has the
 * number. Any thread; waits as is said above, so no lock of the event path may be held. */
int ebpfMonUserNamesFind(ebpfMonUserNames *names, uid_t uid, char *buf, size_t size);

#endif
