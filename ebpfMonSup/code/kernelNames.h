/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the kernel's functions, from /proc/kallsyms: some 7 MB. One thread at a time. */
#ifndef EBPFMON_KERNELNAMES_H
#define EBPFMON_KERNELNAMES_H

#include <stdint.h>

typedef struct ebpfMonKernelNames ebpfMonKernelNames;

ebpfMonKernelNames *ebpfMonKernelNamesRead(void); /* NULL: it cannot be read, or no memory */
void ebpfMonKernelNamesFree(ebpfMonKernelNames *names); /* NULL does no harm */

/* The function that an address lies in; "kernel": not known. */
const char *ebpfMonKernelNamesFind(const ebpfMonKernelNames *names, uint64_t address);

#endif
