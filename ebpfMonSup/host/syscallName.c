/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "host/syscallName.h"
#include "host/syscallTable.h"

/* Numbers differ by machine, and old ones are missing on new machines. */
#define CALL(name) { SYS_##name, #name },
static const struct {
    long number;
    const char *name;
} calls[] = { EBPFMON_SYSCALLS EBPFMON_SYSCALLS_MORE };

#define CALLS (sizeof(calls) / sizeof(calls[0]))

void ebpfMonSyscallName(long number, char *buf, size_t size)
{
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].number == number) {
            snprintf(buf, size, "%s", calls[i].name);
            return;
        }
    snprintf(buf, size, "system call %ld", number);
}

long ebpfMonSyscallNumber(const char *name)
{
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    return -1;
}
