/* SPDX-License-Identifier: BSD-3-Clause */
/* The files with the code of a process, kept open while its stacks are unwound. In a job only (foreign.h), because
 * these are mappings and files of another process. */
#ifndef EBPFMON_STACKFILES_H
#define EBPFMON_STACKFILES_H

#include <stdint.h>
#include <sys/types.h>
#include "code/elfFile.h"

#define EBPFMON_STACK_FILES 16

typedef struct {
    uint64_t start, end, bias; /* bias: added to the file's addresses */
    ebpfMonElfFile elf;
    int  fd;
    char name[40];
} ebpfMonStackFile;

typedef struct {
    pid_t pid;
    unsigned count;
    ebpfMonStackFile file[EBPFMON_STACK_FILES];
} ebpfMonStackFiles;

void ebpfMonStackFilesInit(ebpfMonStackFiles *files, pid_t pid);
void ebpfMonStackFilesClose(ebpfMonStackFiles *files);

/* The file that the process has at "pc", NULL: none that can be read. */
ebpfMonStackFile *ebpfMonStackFilesFind(ebpfMonStackFiles *files, uint64_t pc);

#endif
