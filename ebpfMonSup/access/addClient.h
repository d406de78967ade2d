/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces asAddClient of Base by a function of ours. Every server calls asAddClient in the thread of the connection
 * when a client makes a channel. Access security has no hook at this place, and it compares only names that the client
 * claims.
 *
 * The replacement works because the dynamic linker searches shared libraries in the order in which they are linked,
 * ours before Base's libCom (asLibRoutines.c). Our function calls Base's function each time. If the record is guarded
 * and the client may not write, it passes empty names and level 1, for which no rule of the guarded groups grants WRITE
 * (guard.c). For a CA client it passes the call unchanged: puts of CA clients are judged when they come
 * (guardedPuts.h). A client of any other server than rsrv and pvAccessCPP may not write.
 */
#ifndef EBPFMON_ADDCLIENT_H
#define EBPFMON_ADDCLIENT_H

#include <asLib.h>

/* Makes a client of access security without names: no rule of the guarded groups grants it WRITE. Returns what
 * asAddClient returns: 0, or an error of asLib.h. Any thread. */
long ebpfMonAddClientNobody(ASCLIENTPVT *client, ASMEMBERPVT member);

/* Nonzero: servers call our function. 0: they call Base's, because the program is linked with static libraries. Any
 * thread. */
int ebpfMonAddClientIsInForce(void);

#endif
