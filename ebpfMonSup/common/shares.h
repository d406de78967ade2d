/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares of a table by user: no user can fill a table for others. While there is room, everybody gets what he asks for.
 * When there is none, the user who has most gives up what he got last. So who was there first keeps it, as long as he
 * does not have most, and a user who fills a table takes only from himself. System users go first: as long as another
 * user has anything, they give up nothing.
 *
 * Who is asked to pay for a process or a network namespace: host/procRead.h. No state; any thread.
 */
#ifndef EBPFMON_SHARES_H
#define EBPFMON_SHARES_H

#include <stdint.h>

#define EBPFMON_SYSTEM_USERS 1000 /* user ids below this one are root, and users of services (login.defs(5), UID_MIN) */

typedef struct {
    uint64_t user;     /* a user id, or another number of whoever pays */
    int      isSystem; /* nonzero: a system user */
    uint64_t order;    /* the larger, the later he got it */
    uint64_t size;     /* places of the table that it takes */
    int      isOut;    /* result; nonzero: it is given up */
} ebpfMonShare;

/* Chooses what is given up, until the others have at most "room" places together. Who wants more is among them, as the
 * last one. Returns how many are out. Takes count * (count + result) steps. */
unsigned ebpfMonSharesFit(ebpfMonShare *shares, unsigned count, uint64_t room);

#endif
