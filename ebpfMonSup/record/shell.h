/* SPDX-License-Identifier: BSD-3-Clause */
/* Each function registers the iocsh commands of one subject. shell.c calls all of them, in the thread of the
 * registrars. */
#ifndef EBPFMON_SHELL_H
#define EBPFMON_SHELL_H

void ebpfMonMonitorShellRegister(void); /* start, filter, levels, report */
void ebpfMonListShellRegister(void);    /* IOCs, records, puts, chains, traces, searches, clients */
void ebpfMonAccessShellRegister(void);  /* who may write to the monitor's PVs */
void ebpfMonRulesShellRegister(void);   /* rules and unexpected puts */
void ebpfMonLogShellRegister(void);     /* logs */
void ebpfMonConsoleShellRegister(void); /* a console at a socket */

#endif
