/* SPDX-License-Identifier: BSD-3-Clause */
/* For the time of the change only: include the one of these three that is needed. */
#ifndef EBPFMON_LOADER_H
#define EBPFMON_LOADER_H

#include "probe/kernelEvents.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"

#endif
