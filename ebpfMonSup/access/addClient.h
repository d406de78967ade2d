/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in front of asAddClient of Base. Every server calls it, in the thread of the connection, when a client makes a
 * channel; access security has no hook there, and compares names that the client claims.
 *
 * It works because shared libraries are searched in the order in which they are linked, ours before Base's libCom. It
 * passes each call on. For a guarded record and a client that may not write, it leaves out the names and says level 1,
 * for which no rule of the guarded groups grants WRITE (guard.c). A client of CA passes as it is: its puts are judged
 * when they come (guardedPuts.h). A client of any other server than rsrv and pvAccessCPP may not write.
 */
#ifndef EBPFMON_ADDCLIENT_H
#define EBPFMON_ADDCLIENT_H

#include <asLib.h>

/* A client of access security that stands for nobody: no rule of the guarded groups grants it WRITE. As asAddClient. */
long ebpfMonAddClientNobody(ASCLIENTPVT *client, ASMEMBERPVT member);

/* Whether it is called in place of Base's. Not in a program that is linked with static libraries. */
int ebpfMonAddClientIsInForce(void);

#endif
