/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probes of one IOC. The kernel calls our programs only for this process, at the sites of its program files. Only
 * the follower uses these functions. Before the follower starts, calibrate.c and childTrial.c set probes on functions
 * of our own.
 */
#ifndef EBPFMON_ATTACH_H
#define EBPFMON_ATTACH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "code/image.h"
#include "probe/closer.h"
#include "probe/kernelLoad.h"

/* Sets one probe. 0 or an error of uprobe.h. "path": the program file; "offsets": bytes from its beginning, "count" of
 * them; only a kernel with uprobe_multi takes more than one. */
int ebpfMonProbeOn(ebpfMonProbe *probe, ebpfMonProg prog, const char *path, const uint64_t *offsets, unsigned count,
                   pid_t pid, int isReturn);
/* Removes the probe, and waits until the kernel has removed it (closer.h). */
void ebpfMonProbeOff(ebpfMonProbe *probe);

/* Where the probes are that see chains begin and end. */
typedef enum {
    ebpfMonAttachEntries, /* at the entries of dbScanLock() and dbScanUnlock() */
    ebpfMonAttachCalls,   /* at the calls of both functions, except those in functions that only read */
    ebpfMonAttachPasses   /* the same; in scanList() of Base one trap ends a chain and begins the next one */
} ebpfMonAttachWay;

typedef struct {
    pid_t pid;
    const ebpfMonImage *image;
    const ebpfMonBinary *core;    /* of this image */
    int   noReturn;               /* a return probe could end this process (childTrial.h) */
    uint32_t on;                  /* programs that are attached, a bit each (EBPFMON_BIT) */
    uint32_t stepped;             /* of these, the programs at an instruction that the kernel single-steps */
    struct {
        unsigned count;           /* 1 for a function; for calls, the number of files with calls */
        ebpfMonProbe *probe;
        uint64_t cookie;          /* of all of them (ebpfMonKernelNumberProbe) */
    } probes[ebpfMonProgCount];
    ebpfMonAttachWay way;         /* of the attached probes */
    ebpfMonImageCallers callers;  /* if "complete" is 0, only ebpfMonAttachEntries is possible */
} ebpfMonAttached;

#define EBPFMON_BIT(prog) (1u << (prog))

/* Begins with no probe attached. "image" stays the caller's and must outlive "att". "noReturn": see above. The caller
 * then fills "callers". */
void ebpfMonAttachInit(ebpfMonAttached *att, pid_t pid, const ebpfMonImage *image, int noReturn);

/* The best way for this IOC. Call it after "callers" was filled. "hasLists": the monitor can follow the scan lists in
 * the IOC's memory. */
ebpfMonAttachWay ebpfMonAttachFindWay(const ebpfMonAttached *att, int hasLists);

/* The programs that watch the passes of scan lists, a bit each. They take the place of ebpfMonProgPassCount, and work
 * only in the way ebpfMonAttachPasses. 0: the code of this IOC does not allow it. */
uint32_t ebpfMonAttachSweeps(const ebpfMonAttached *att);

/* Nonzero: when these programs are attached, in the way of the attached probes, those of puts also tell which locks
 * dbPutField() requests and takes, and no others do. */
int ebpfMonAttachIsPutLockSeen(const ebpfMonAttached *att, uint32_t on);

/* Attaches the programs in "want" (a bit each), and detaches all others. If "way" is a new one, all are detached first.
 * A probe that cannot be attached is left out; "note" gets the reason for the first one, or "". Returns the programs
 * that are attached now, a bit each. */
uint32_t ebpfMonAttachSet(ebpfMonAttached *att, uint32_t want, ebpfMonAttachWay way, char *note, size_t size);

/* Detaches all probes of a process that has ended. Does not wait until the kernel has removed them. */
void ebpfMonAttachForget(ebpfMonAttached *att);

/* The programs of a level (EBPFMON_PUTS …) in this way, a bit each. */
uint32_t ebpfMonAttachLevel(int kernelLevel, ebpfMonAttachWay way);

/* --- return probes under seccomp ---
 *
 * Tries if a process with a seccomp filter survives a return probe. Since Linux 6.11, a probed function of x86-64
 * returns by a system call of the kernel's own, uretprobe. No filter knows that call. A filter that kills for unknown
 * calls, or refuses them as those of most containers do, ends the process. Later kernels do not show this call to
 * filters (commit cf6cb56ef244, "seccomp: passthrough uretprobe systemcall without filtering"), and distributions have
 * added that commit to earlier kernels. So the version does not tell, and it is tried.
 */

/* Lets a child process run into a return probe, under a filter that kills it for the calls that the kernel may make.
 * Nonzero: the child survived. 0: it did not, or it could not be tried. Takes some milliseconds, 5 s at most. After
 * ebpfMonKernelLoad, before the follower starts. */
int ebpfMonSeccompTryReturn(void);

#endif
