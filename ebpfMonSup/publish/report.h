/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shell prints. */
#ifndef EBPFMON_REPORT_H
#define EBPFMON_REPORT_H

#include <stdint.h>

long ebpfMonReportIocs(void);
long ebpfMonReportRecords(const char *iocPattern, const char *recordPattern);
long ebpfMonReportChains(const char *rootPattern);
void ebpfMonReport(int level);

/* Inode of our network namespace: the key of loopback connections. */
uint32_t ebpfMonReportNetns(void);

#endif
