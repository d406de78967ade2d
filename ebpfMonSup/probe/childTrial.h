/* SPDX-License-Identifier: BSD-3-Clause */
/* Tries what a probe does to a process, in a child process that may come to harm. */
#ifndef EBPFMON_CHILDTRIAL_H
#define EBPFMON_CHILDTRIAL_H

#include <sys/types.h>

typedef struct {
    /* Sets the probe in the child. 0: it is set. The child waits meanwhile. */
    int (*set)(void *arg, pid_t child);
    void (*unset)(void *arg); /* removes it. The child still lives, or has died of it */
    /* Runs in the child, which has copies of locks that threads of the parent may hold: it may only make system calls.
     * Returns its answer, 0 to 127. */
    int (*run)(void);
    void *arg;
} ebpfMonChildTrial;

/* The answer of the child; -1: it gave none, within 5 s, or could not be tried. Takes some milliseconds. */
int ebpfMonChildTry(const ebpfMonChildTrial *trial);

#endif
