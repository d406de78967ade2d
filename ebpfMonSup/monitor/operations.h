/* SPDX-License-Identifier: BSD-3-Clause */
/* What records and the shell may ask of the monitor: the table of model/monitorOps.h, filled in. */
#ifndef EBPFMON_OPERATIONS_H
#define EBPFMON_OPERATIONS_H

#include "monitor/monitor.h"

/* Before iocInit. The monitor stays the caller's. */
void ebpfMonOperationsRegister(ebpfMonMonitor *monitor,
                               ebpfMonOpStatus (*configure)(const ebpfMonSettings *settings, char *why, size_t size),
                               long (*start)(void));

#endif
