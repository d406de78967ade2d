/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probes on one IOC: attached to that process alone, at the sites of its binary. The follower owns them;
 * calibrate.c probes a function of our own before the follower starts.
 */
#ifndef EBPFMON_ATTACH_H
#define EBPFMON_ATTACH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/closer.h"
#include "probe/kernelLoad.h"
#include "ioc/image.h"

/* 0 or errno. "offset": in the file. */
int ebpfMonProbeOn(ebpfMonProbe *probe, ebpfMonProg prog, const char *path, uint64_t offset, pid_t pid, int isReturn);
void ebpfMonProbeOff(ebpfMonProbe *probe);

typedef struct {
    pid_t pid;
    const ebpfMonBinary *core, *com;
    char  path[128], comPath[128];
    int   noReturn;               /* seccomp may kill it for a return probe (kernel 6.11 makes a system call) */
    uint32_t on;                  /* bit by ebpfMonProg */
    uint32_t stepped;             /* of those, which sit on a single-stepped instruction */
    ebpfMonProbe probe[ebpfMonProgCount];
} ebpfMonAttached;

#define EBPFMON_BIT(prog) (1u << (prog))

void ebpfMonAttachInit(ebpfMonAttached *att, pid_t pid, const ebpfMonImage *image, int noReturn);

/* Attaches what is in "want" and not on, and detaches the rest. A probe that cannot be attached is left out; "note"
 * says why, of the first one. Returns the bits that are on. */
uint32_t ebpfMonAttachSet(ebpfMonAttached *att, uint32_t want, char *note, size_t size);

/* Detaches all, of a process that has ended: it does not wait until the kernel has let go of them. */
void ebpfMonAttachForget(ebpfMonAttached *att);

/* The programs of a level (EBPFMON_PUTS …), a bit each. */
uint32_t ebpfMonAttachLevel(int kernelLevel);

#endif
