/* SPDX-License-Identifier: BSD-3-Clause */
/* Where threads that hang are: as frames, and as the record that the innermost of them has in hand. */
#ifndef EBPFMON_HANGSTACK_H
#define EBPFMON_HANGSTACK_H

#include <sys/types.h>
#include "model/health.h"

/* Once for each hang, each second. h->tid and h->begin say which; fills in h->now (with the targets' lock taken inside)
 * and adds to h->what. "h->who" is not complete yet. */
void ebpfMonHangStack(pid_t pid, ebpfMonHang *h);

/* The lines that show it, behind "title". */
void ebpfMonHangStackLines(const ebpfMonHang *h, pid_t pid, ebpfMonHealth *health);

#endif
