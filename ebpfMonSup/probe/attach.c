/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "probe/attach.h"
#include "probe/uprobeMulti.h"

#define ON_REQUEST 100 /* no level has it for all IOCs: it costs too much, or is not always needed */

static const struct {
    ebpfMonFn fn;
    int isReturn;
    int level; /* from this one on */
} programOf[ebpfMonProgCount] = {
    [ebpfMonProgPut]        = { ebpfMonFnPut, 0, EBPFMON_PUTS },
    [ebpfMonProgPutReturn]  = { ebpfMonFnPut, 1, EBPFMON_PUTS },
    [ebpfMonProgPutField]   = { ebpfMonFnPutField, 0, EBPFMON_PUTS },
    [ebpfMonProgNotify]     = { ebpfMonFnProcessNotify, 0, EBPFMON_PUTS },
    [ebpfMonProgCheckPut]   = { ebpfMonFnCheckPut, 0, EBPFMON_PUTS },
    [ebpfMonProgCamessage]  = { ebpfMonFnCamessage, 0, EBPFMON_PUTS },
    [ebpfMonProgCaLink]     = { ebpfMonFnCaPutLink, 0, EBPFMON_PUTS },
    [ebpfMonProgUnlock]     = { ebpfMonFnScanUnlock, 0, EBPFMON_COUNTS },
    [ebpfMonProgUnlockMany] = { ebpfMonFnScanUnlockMany, 0, EBPFMON_COUNTS },
    [ebpfMonProgLock]       = { ebpfMonFnScanLock, 0, EBPFMON_CHAINS },
    [ebpfMonProgCompleted]  = { ebpfMonFnFwdLink, 0, ON_REQUEST },
    [ebpfMonProgProcess]    = { ebpfMonFnProcess, 0, ON_REQUEST },
    [ebpfMonProgCallback]   = { ebpfMonFnCallback, 0, EBPFMON_CHAINS },
    [ebpfMonProgDelayed]    = { ebpfMonFnCallbackDelayed, 0, EBPFMON_CHAINS },
    [ebpfMonProgOnce]       = { ebpfMonFnScanOnce, 0, EBPFMON_CHAINS },
    [ebpfMonProgPop]        = { ebpfMonFnRingPop, 0, EBPFMON_CHAINS },
    [ebpfMonProgPopReturn]  = { ebpfMonFnRingPop, 1, ON_REQUEST },
};

uint32_t ebpfMonAttachLevel(int level)
{
    uint32_t want = 0;

    for (int i = 0; i < ebpfMonProgCount; i++)
        if (level >= programOf[i].level)
            want |= EBPFMON_BIT(i);
    return want;
}

void ebpfMonAttachInit(ebpfMonAttached *att, pid_t pid, const ebpfMonImage *image, int noReturn)
{
    memset(att, 0, sizeof(*att));
    att->pid = pid;
    att->core = image->core;
    att->noReturn = noReturn;
    snprintf(att->path, sizeof(att->path), "%s", image->openPath);
    att->com = image->com;
    snprintf(att->comPath, sizeof(att->comPath), "%s", image->comPath);
}

int ebpfMonProbeOn(ebpfMonProbe *probe, ebpfMonProg prog, const char *path, uint64_t offset, pid_t pid, int isReturn)
{
    LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = isReturn);

    probe->link = NULL;
    if (ebpfMonFeature.uprobeMulti) {
        probe->fd = ebpfMonUprobeMultiAttach(ebpfMonKernelGetProgramFd(prog), path, offset, pid, isReturn);
        return probe->fd < 0 ? errno : 0;
    }
    probe->link = bpf_program__attach_uprobe_opts(ebpfMonKernelGetProgram(prog), pid, path, offset, &opts);
    return probe->link ? 0 : errno;
}

void ebpfMonProbeOff(ebpfMonProbe *probe)
{
    ebpfMonCloserClose(probe, 1);
}

static int attachOne(ebpfMonAttached *att, int prog, char *note, size_t size)
{
    const ebpfMonSite *site = &att->core->site[programOf[prog].fn];
    const char *name = ebpfMonFnNames[programOf[prog].fn], *path = att->path;
    int isReturn = programOf[prog].isReturn, err;

    if (site->cls == ebpfMonSiteNone && att->com) {
        site = &att->com->site[programOf[prog].fn];
        path = att->comPath;
    }
    if (site->cls == ebpfMonSiteNone) {
        if (prog >= ebpfMonProgCallback)
            return -1; /* an older Base: the monitor only cannot tell how long things wait */
        if (!note[0])
            snprintf(note, size, "%s is not in this IOC's binary", name);
        return -1;
    }
    if (isReturn && (att->noReturn || !site->canReturn)) {
        if (!note[0] && prog == ebpfMonProgPutReturn)
            snprintf(note, size, "results of puts not seen: %s", att->noReturn ?
                     "the IOC runs under seccomp, which may forbid return probes" :
                     "no cheap place for a return probe");
        return -1;
    }
    err = ebpfMonProbeOn(&att->probe[prog], (ebpfMonProg)prog, path, site->offset, att->pid, isReturn);
    if (err) {
        if (!note[0])
            /* A probe that is a perf event takes more than CAP_PERFMON, whatever perf_event_paranoid says. */
            snprintf(note, size, "%s cannot be probed: %s%s", name, strerror(err),
                     err == EACCES && !ebpfMonFeature.uprobeMulti ?
                     ": this kernel asks for CAP_SYS_ADMIN; start ebpfMon as root, or with that" : "");
        return -1;
    }
    att->on |= EBPFMON_BIT(prog);
    if (site->cls == ebpfMonSiteStepped)
        att->stepped |= EBPFMON_BIT(prog);
    return 0;
}

/* Takes the probes out that are on and not wanted, in the order of the enum. Returns their number. */
static unsigned takeOut(ebpfMonAttached *att, uint32_t want, ebpfMonProbe out[ebpfMonProgCount])
{
    unsigned n = 0;

    for (int i = 0; i < ebpfMonProgCount; i++)
        if (!(want & EBPFMON_BIT(i)) && (att->on & EBPFMON_BIT(i)))
            out[n++] = att->probe[i];
    att->on &= want;
    att->stepped &= want;
    return n;
}

uint32_t ebpfMonAttachSet(ebpfMonAttached *att, uint32_t want, char *note, size_t size)
{
    ebpfMonProbe out[ebpfMonProgCount];
    unsigned n;

    note[0] = 0;
    /* First the program that sees the end of a chain, then the one that sees its beginning: so no lock is seen taken
     * and never released. A put's return comes before its entry for the same reason. They are detached the other way
     * round, in the order of the enum: the probe goes at the beginning of its close, and closing takes long after that. */
    for (int i = ebpfMonProgCount - 1; i >= 0; i--)
        if ((want & EBPFMON_BIT(i)) && !(att->on & EBPFMON_BIT(i)))
            attachOne(att, i, note, size);
    n = takeOut(att, want, out);
    if (n)
        ebpfMonCloserClose(out, n);
    return att->on;
}

void ebpfMonAttachForget(ebpfMonAttached *att)
{
    ebpfMonProbe out[ebpfMonProgCount];
    unsigned n = takeOut(att, 0, out);

    if (n)
        ebpfMonCloserCloseLater(out, n);
}
