/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EBPFMON_CONSOLECLIENT_H
#define EBPFMON_CONSOLECLIENT_H

/* "ebpfMon --console": the terminal becomes the console of a running service (the command ebpfMonConsole), until either
 * ends. The exit status. */
int runConsoleClient(const char *path);

#endif
