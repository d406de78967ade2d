/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsExport.h>

#include "record/shell.h"

static void ebpfMonShellRegistrar(void)
{
    ebpfMonMonitorShellRegister();
    ebpfMonListShellRegister();
    ebpfMonAccessShellRegister();
    ebpfMonRulesShellRegister();
    ebpfMonLogShellRegister();
    ebpfMonConsoleShellRegister();
}
epicsExportRegistrar(ebpfMonShellRegistrar);
