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

#include "code/image.h"
#include "probe/closer.h"
#include "probe/kernelLoad.h"

/* 0 or errno. "offsets": in the file; more than one only where the kernel has uprobe_multi. */
int ebpfMonProbeOn(ebpfMonProbe *probe, ebpfMonProg prog, const char *path, const uint64_t *offsets, unsigned count,
                   pid_t pid, int isReturn);
void ebpfMonProbeOff(ebpfMonProbe *probe);

/* How the ends of chains are seen. */
typedef enum {
    ebpfMonAttachEntries, /* at the entries of dbScanLock and dbScanUnlock, whoever calls them */
    ebpfMonAttachCalls,   /* at their calls, but for those of functions that only read */
    ebpfMonAttachPasses   /* the same; and in scanList one trap ends a chain and begins the next */
} ebpfMonAttachWay;

typedef struct {
    pid_t pid;
    const ebpfMonBinary *core, *com, *server;
    char  path[128], comPath[128], serverPath[128];
    int   noReturn;               /* it would not survive a return probe */
    uint32_t on;                  /* bit by ebpfMonProg */
    uint32_t stepped;             /* of those, which sit on a single-stepped instruction */
    struct {
        unsigned count;           /* one for a function, or one for each file that calls it */
        ebpfMonProbe *probe;
    } probes[ebpfMonProgCount];
    ebpfMonAttachWay way;         /* of the probes that are on */
    ebpfMonImageCallers callers;  /* complete 0: ebpfMonAttachEntries is the only way */
} ebpfMonAttached;

#define EBPFMON_BIT(prog) (1u << (prog))

void ebpfMonAttachInit(ebpfMonAttached *att, pid_t pid, const ebpfMonImage *image, int noReturn);

/* The best way for this IOC; "callers" has been read. "hasLists": scan lists can be followed in its memory. */
ebpfMonAttachWay ebpfMonAttachFindWay(const ebpfMonAttached *att, int hasLists);

/* The programs that watch passes of scan lists, one trap each, in place of ebpfMonProgPassCount: in ebpfMonAttachPasses
 * alone. 0: this IOC's code does not allow it. */
uint32_t ebpfMonAttachSweeps(const ebpfMonAttached *att);

/* Attaches what is in "want" and not on, or on in another way, and detaches the rest. A probe that cannot be attached is left out; "note"
 * says why, of the first one. Returns the bits that are on. */
uint32_t ebpfMonAttachSet(ebpfMonAttached *att, uint32_t want, ebpfMonAttachWay way, char *note, size_t size);

/* Detaches all, of a process that has ended: it does not wait until the kernel has let go of them. */
void ebpfMonAttachForget(ebpfMonAttached *att);

/* The programs of a level (EBPFMON_PUTS …), a bit each. */
uint32_t ebpfMonAttachLevel(int kernelLevel, ebpfMonAttachWay way);

#endif
