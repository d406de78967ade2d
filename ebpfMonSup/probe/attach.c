/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "probe/attach.h"
#include "probe/childTrial.h"
#include "probe/kernelTables.h"
#include "probe/uprobe.h"

#define ON_REQUEST 100 /* not part of any level: the follower attaches it if needed */
#define CALLER(who) (1u << ebpfMonCaller##who)
#define PROCESSING (CALLER(Other) | CALLER(PutField)) /* those that can process records, except scanList */
#define PUTS (EBPFMON_BIT(ebpfMonProgPut) | EBPFMON_BIT(ebpfMonProgPutField)) /* a put to SCAN, and a lock that
                                                                               * dbPutField() takes, is seen there */

/* Where a program is attached. */
typedef struct {
    ebpfMonFn fn;
    int isReturn;
    int level;        /* the first level that has the program … */
    int below;        /* … and the first level that does not have it any more; 0: all higher levels have it */
    unsigned ways;    /* the ways in which it is attached, a bit each (WAY) */
    unsigned callers; /* a bit each (CALLER): the program is at the calls by these functions, except in the way
                       * ebpfMonAttachEntries; 0: it is at the entry of the function */
    ebpfMonCalled called;
} probePlace;

#define ALL_WAYS 7u
#define WAY(which) (1u << ebpfMonAttach##which)
#define ENTRY(name, from) { .fn = ebpfMonFn##name, .level = from, .ways = ALL_WAYS }

static const probePlace placeOf[ebpfMonProgCount] = {
    [ebpfMonProgPut] = ENTRY(Put, EBPFMON_PUTS),
    [ebpfMonProgPutReturn] = {ebpfMonFnPut, 1, EBPFMON_PUTS, .ways = ALL_WAYS},
    [ebpfMonProgPutField] = ENTRY(PutField, EBPFMON_PUTS),
    [ebpfMonProgNotify] = ENTRY(ProcessNotify, EBPFMON_PUTS),
    [ebpfMonProgCheckPut] = ENTRY(CheckPut, EBPFMON_PUTS),
    [ebpfMonProgCamessage] = ENTRY(Camessage, EBPFMON_PUTS),
    [ebpfMonProgCaLink] = ENTRY(CaPutLink, EBPFMON_PUTS),
    [ebpfMonProgServe] = ENTRY(Serve, EBPFMON_PUTS),
    [ebpfMonProgClaim] = ENTRY(AddClient, EBPFMON_PUTS),
    [ebpfMonProgLock] = {ebpfMonFnScanLock, 0, EBPFMON_CHAINS, 0, ALL_WAYS, PROCESSING, ebpfMonCalledLock},
    [ebpfMonProgPassBegin] = {ebpfMonFnScanLock, 0, EBPFMON_CHAINS, 0, WAY(Passes)},
    [ebpfMonProgUnlock] = {ebpfMonFnScanUnlock, 0, EBPFMON_COUNTS, 0, ALL_WAYS, PROCESSING, ebpfMonCalledUnlock},
    [ebpfMonProgPassCount] = {ebpfMonFnScanUnlock, 0, EBPFMON_COUNTS, EBPFMON_CHAINS, WAY(Passes), CALLER(ScanList),
                              ebpfMonCalledUnlock},
    [ebpfMonProgPassNext] = {ebpfMonFnScanUnlock, 0, EBPFMON_CHAINS, 0, WAY(Passes), CALLER(ScanList),
                             ebpfMonCalledUnlock},
    [ebpfMonProgListEnd] = {ebpfMonFnScanUnlock, 0, ON_REQUEST, 0, WAY(Passes), CALLER(ScanList), ebpfMonCalledListEnd},
    [ebpfMonProgListBegin] = {ebpfMonFnScanUnlock, 0, ON_REQUEST, 0, WAY(Passes)},
    [ebpfMonProgLocked] = {ebpfMonFnScanLock, 0, ON_REQUEST, 0, WAY(Passes), PROCESSING,
                           .called = ebpfMonCalledLock},
    [ebpfMonProgAsk] = {ebpfMonFnScanLock, 0, ON_REQUEST, 0, WAY(Passes), PROCESSING, ebpfMonCalledLock},
    [ebpfMonProgAskMany] = {ebpfMonFnScanLock, 0, ON_REQUEST, 0, WAY(Passes), PROCESSING, ebpfMonCalledLockMany},
    [ebpfMonProgProcessCall] = {ebpfMonFnProcess, 0, EBPFMON_COUNTS, 0, WAY(Calls) | WAY(Passes), CALLER(Other),
                                ebpfMonCalledProcess},
    [ebpfMonProgUnlockMany] = ENTRY(ScanUnlockMany, EBPFMON_COUNTS),
    [ebpfMonProgCompleted] = ENTRY(FwdLink, ON_REQUEST),
    [ebpfMonProgProcess] = ENTRY(Process, ON_REQUEST),
    [ebpfMonProgCallback] = ENTRY(Callback, EBPFMON_CHAINS),
    [ebpfMonProgDelayed] = ENTRY(CallbackDelayed, EBPFMON_CHAINS),
    [ebpfMonProgOnce] = ENTRY(ScanOnce, EBPFMON_CHAINS),
    [ebpfMonProgPop] = ENTRY(RingPop, EBPFMON_CHAINS),
    [ebpfMonProgPopReturn] = {ebpfMonFnRingPop, 1, ON_REQUEST, .ways = ALL_WAYS},
};

uint32_t ebpfMonAttachLevel(int level, ebpfMonAttachWay way)
{
    uint32_t want = 0;

    for (int i = 0; i < ebpfMonProgCount; i++)
        if (level >= placeOf[i].level && (!placeOf[i].below || level < placeOf[i].below) &&
            (placeOf[i].ways & (1u << way)))
            want |= EBPFMON_BIT(i);
    return want;
}

void ebpfMonAttachInit(ebpfMonAttached *att, pid_t pid, const ebpfMonImage *image, int noReturn)
{
    memset(att, 0, sizeof(*att));
    att->pid = pid;
    att->image = image;
    att->core = image->core;
    att->noReturn = noReturn;
}

/* Without uprobe_multi each call that we probe would need a perf event of its own. */
ebpfMonAttachWay ebpfMonAttachFindWay(const ebpfMonAttached *att, int hasLists)
{
    const ebpfMonCalls *calls = att->core->calls;

    if (!ebpfMonFeature.uprobeMulti || !att->callers.complete)
        return ebpfMonAttachEntries;
    return hasLists && calls && calls->scanList.cls == ebpfMonSiteFast ? ebpfMonAttachPasses : ebpfMonAttachCalls;
}

uint32_t ebpfMonAttachSweeps(const ebpfMonAttached *att)
{
    const ebpfMonCalls *calls = att->core->calls;
    uint32_t want = EBPFMON_BIT(ebpfMonProgListEnd) | EBPFMON_BIT(ebpfMonProgLocked) | EBPFMON_BIT(ebpfMonProgAsk) |
                    EBPFMON_BIT(ebpfMonProgAskMany) | PUTS |
                    EBPFMON_BIT(calls->endsOtherwise ? ebpfMonProgListBegin : ebpfMonProgPassBegin);
    unsigned ends = 0;

    for (unsigned i = 0; i < att->callers.count; i++)
        if (!att->callers.file[i].binary->calls->knowsBehind)
            return 0;
    for (unsigned k = 0; k < calls->count; k++)
        ends += calls->call[k].called == ebpfMonCalledListEnd;
    return ends ? want : 0;
}

int ebpfMonProbeOn(ebpfMonProbe *probe, ebpfMonProg prog, const char *path, const uint64_t *offsets, unsigned count,
                   pid_t pid, int isReturn)
{
    const ebpfMonUprobePlaces places = { .path = path, .offset = offsets, .count = count, .pid = pid };
    unsigned probes = 0;

    return ebpfMonUprobeSet(ebpfMonKernelGetProgram(prog), &places, isReturn, probe, &probes);
}

void ebpfMonProbeOff(ebpfMonProbe *probe)
{
    ebpfMonCloserClose(probe, 1);
}

/* Attaches one more probe of a program. 0 or an error of uprobe.h. */
static int addProbe(ebpfMonAttached *att, int prog, const char *path, const uint64_t *offsets, unsigned count)
{
    const ebpfMonUprobePlaces places = { .path = path, .offset = offsets, .count = count, .pid = att->pid,
                                         .cookie = att->probes[prog].cookie };
    unsigned n = att->probes[prog].count;
    ebpfMonProbe *more = realloc(att->probes[prog].probe, (n + 1) * sizeof(*more));

    if (!more)
        return ENOMEM;
    att->probes[prog].probe = more;
    return ebpfMonUprobeSet(ebpfMonKernelGetProgram((ebpfMonProg)prog), &places, placeOf[prog].isReturn, more,
                            &att->probes[prog].count);
}

/* Nonzero: the entry of dbPutField(), which has a probe anyway, tells that its lock set is requested
 * (ebpfmon_putfield), and the entry of dbPut() that it was taken (ebpfmon_put). So its call of dbScanLock() has no
 * probe. */
static int isPutLockSeen(const ebpfMonAttached *att)
{
    const ebpfMonCalls *calls = att->core->calls;

    return calls && calls->putFieldLocks && att->core->site[ebpfMonFnPutField].cls == ebpfMonSiteFast;
}

int ebpfMonAttachIsPutLockSeen(const ebpfMonAttached *att, uint32_t on)
{
    return att->way != ebpfMonAttachEntries && isPutLockSeen(att) && (on & PUTS) == PUTS &&
           (on & (EBPFMON_BIT(ebpfMonProgLock) | EBPFMON_BIT(ebpfMonProgLocked)));
}

/* Finds the site of a function. *path gets its file: the one with the database code of Base, libCom, the one with the
 * CA server, or pvxs. */
static const ebpfMonSite *findFunction(const ebpfMonAttached *att, ebpfMonFn fn, const char **path)
{
    const ebpfMonImage *image = att->image;
    const struct { const ebpfMonBinary *binary; const char *path; } other[] = {
        { image->com, image->comPath }, { image->server, image->serverPath }, { image->pvxs, image->pvxsPath },
    };

    *path = image->openPath;
    for (size_t i = 0; att->core->site[fn].cls == ebpfMonSiteNone && i < sizeof(other) / sizeof(other[0]); i++)
        if (other[i].binary && other[i].binary->site[fn].cls != ebpfMonSiteNone) {
            *path = other[i].path;
            return &other[i].binary->site[fn];
        }
    return &att->core->site[fn];
}

/* Nonzero: the program is attached at this call, or behind it. */
static int isPlace(const ebpfMonAttached *att, int prog, unsigned callers, const ebpfMonCall *call)
{
    int isSeen = call->called == ebpfMonCalledLock && call->caller == ebpfMonCallerPutField && isPutLockSeen(att);

    if (isSeen || !(callers & (1u << call->caller)))
        return 0;
    return prog == ebpfMonProgLocked ? call->behind != 0 : call->called == placeOf[prog].called;
}

/* Attaches the program at all calls of its function by "callers", in all files. 0 or an error of uprobe.h. */
static int attachToCalls(ebpfMonAttached *att, int prog, unsigned callers)
{
    for (unsigned i = 0; i < att->callers.count; i++) {
        const ebpfMonCalls *calls = att->callers.file[i].binary->calls;
        uint64_t *offsets = malloc((calls->count + 1) * sizeof(*offsets));
        unsigned n = 0;
        int err;

        for (unsigned k = 0; offsets && k < calls->count; k++)
            if (isPlace(att, prog, callers, &calls->call[k]))
                offsets[n++] = prog == ebpfMonProgLocked ? calls->call[k].behind : calls->call[k].offset;
        err = !offsets ? ENOMEM : n ? addProbe(att, prog, att->callers.file[i].path, offsets, n) : 0;
        free(offsets);
        if (err)
            return err;
    }
    return 0;
}

/* Finds the place of a program: *site in the file *path. Returns NULL if there is one; else the reason, which is "" if
 * no operator has to know it. */
static const char *findSite(const ebpfMonAttached *att, int prog, const ebpfMonSite **site, const char **path,
                            char *note, size_t size)
{
    const probePlace *place = &placeOf[prog];

    *site = findFunction(att, place->fn, path);
    if (prog == ebpfMonProgPassBegin || prog == ebpfMonProgListBegin) {
        *site = &att->core->calls->scanList;
        *path = att->image->openPath;
    }
    if ((*site)->cls == ebpfMonSiteNone) {
        if (prog == ebpfMonProgServe || prog == ebpfMonProgClaim)
            return ""; /* without pvxs; or its clients, or the names that they claim, are often not known */
        if (prog >= ebpfMonProgCallback)
            return ""; /* an older Base: only the waiting times of queues are not known */
        if (prog == ebpfMonProgCheckPut && (att->core->isCheckCopied || att->core->isRecognised))
            return ""; /* camessage tells the client; levelChoice.c says that refused puts are not seen */
        if (prog == ebpfMonProgCaLink && att->core->isRecognised)
            return ""; /* at -O3 it is copied into its callers. The note of the IOC names what was not recognised */
        snprintf(note, size, "%s is not in this IOC's binary", ebpfMonFnNames[place->fn]);
        return note;
    }
    if (!place->isReturn || (!att->noReturn && (*site)->canReturn))
        return NULL;
    if (prog != ebpfMonProgPutReturn)
        return "";
    return att->noReturn ?
               "results of puts not seen: the IOC runs under seccomp, and this kernel's return probes could end it" :
               "results of puts not seen: no cheap place for a return probe";
}

static void closeProbes(ebpfMonAttached *att, int prog)
{
    ebpfMonKernelTakeProbeAway(att->probes[prog].cookie);
    if (att->probes[prog].count)
        ebpfMonCloserClose(att->probes[prog].probe, att->probes[prog].count);
    free(att->probes[prog].probe);
    att->probes[prog].probe = NULL;
    att->probes[prog].count = 0;
}

static void attachOne(ebpfMonAttached *att, int prog, ebpfMonAttachWay way, char *note, size_t size)
{
    unsigned callers = way == ebpfMonAttachEntries ? 0 : placeOf[prog].callers;
    const char *path = att->image->openPath, *why = NULL;
    const ebpfMonSite *site = NULL;
    char text[160];
    int err;

    if (callers & CALLER(Other) && way == ebpfMonAttachCalls)
        callers |= CALLER(ScanList);
    if (!callers)
        why = findSite(att, prog, &site, &path, text, sizeof(text));
    if (why) {
        if (!note[0])
            snprintf(note, size, "%s", why);
        return;
    }
    att->probes[prog].cookie = ebpfMonKernelNumberProbe((uint32_t)att->pid, (unsigned)prog);
    err = callers ? attachToCalls(att, prog, callers) : addProbe(att, prog, path, &site->offset, 1);
    if (err) {
        closeProbes(att, prog);
        if (!note[0])
            /* The kernel takes a probe that is a perf event only from CAP_SYS_ADMIN; CAP_PERFMON does not suffice,
             * whatever perf_event_paranoid says. */
            snprintf(note, size, "%s cannot be probed: %s%s", ebpfMonFnNames[placeOf[prog].fn],
                     ebpfMonUprobeErrorText(err),
                     err == EACCES && !ebpfMonFeature.uprobeMulti ?
                     ": this kernel asks for CAP_SYS_ADMIN; start ebpfMon as root, or with that" : "");
        return;
    }
    att->on |= EBPFMON_BIT(prog);
    if (site && site->cls == ebpfMonSiteStepped)
        att->stepped |= EBPFMON_BIT(prog);
}

/* camessage() is probed only in IOCs without rsrvCheckPut(), because that one tells which circuit the thread serves. */
static uint32_t findUnneeded(const ebpfMonAttached *att)
{
    const char *path;

    return findFunction(att, ebpfMonFnCheckPut, &path)->cls != ebpfMonSiteNone ? EBPFMON_BIT(ebpfMonProgCamessage) : 0;
}

/* Passes the probes that are attached and not wanted to "closeAll", in the order of the enum ebpfMonProg. */
static void removeUnwanted(ebpfMonAttached *att, uint32_t want,
                           void (*closeAll)(const ebpfMonProbe *probes, unsigned count))
{
    unsigned n = 0, all = 0;
    ebpfMonProbe *out;

    for (int i = 0; i < ebpfMonProgCount; i++)
        if (!(want & EBPFMON_BIT(i)))
            all += att->probes[i].count;
    out = all ? malloc(all * sizeof(*out)) : NULL;
    for (int i = 0; i < ebpfMonProgCount; i++) {
        if (want & EBPFMON_BIT(i))
            continue;
        ebpfMonKernelTakeProbeAway(att->probes[i].cookie);
        if (out) { /* all in one call: then they share the waiting time (closer.h) */
            memcpy(out + n, att->probes[i].probe, att->probes[i].count * sizeof(*out));
            n += att->probes[i].count;
            att->probes[i].count = 0;
        }
        closeProbes(att, i);
    }
    if (n)
        closeAll(out, n);
    free(out);
    att->on &= want;
    att->stepped &= want;
}

uint32_t ebpfMonAttachSet(ebpfMonAttached *att, uint32_t want, ebpfMonAttachWay way, char *note, size_t size)
{
    note[0] = 0;
    want &= ~findUnneeded(att);
    if (way != att->way)
        removeUnwanted(att, 0, ebpfMonCloserClose);
    att->way = way;
    /* Attach in the reverse order of the enum: the program that sees the end of a chain comes before the one that sees
     * its beginning. So the kernel part never sees a lock that is taken and not released (for those of
     * dbPutField(), ebpfMonTargetConf.isPutLockSeen does that). For the same reason the
     * return of dbPut() comes before its entry. Detach in the order of the enum: a program is not
     * called any more, or returns at once (isTakenAway of bpf/common/probe.bpf.h), long before the kernel has removed
     * its probe. */
    for (int i = ebpfMonProgCount - 1; i >= 0; i--)
        if ((want & EBPFMON_BIT(i)) && !(att->on & EBPFMON_BIT(i)))
            attachOne(att, i, way, note, size);
    removeUnwanted(att, want, ebpfMonCloserClose);
    return att->on;
}

void ebpfMonAttachForget(ebpfMonAttached *att)
{
    removeUnwanted(att, 0, ebpfMonCloserCloseLater);
}

/* --- return probes under seccomp --- */

#define CALLS        100
#define NR_URETPROBE 335 /* arch/x86/entry/syscalls/syscall_64.tbl */
#define NR_UPROBE    336 /* the same for probes at entries, since Linux 6.18 */

/* Call() calls Probed(), which compares its return address with the real one. The result is 0 if they are the same. A
 * return probe replaces the return address, so then it is not 0. */
__asm__(".text\n"
        ".hidden ebpfMonSeccompCall\n"
        ".globl ebpfMonSeccompCall\n"
        ".type ebpfMonSeccompCall,%function\n"
        ".hidden ebpfMonSeccompProbed\n"
        ".globl ebpfMonSeccompProbed\n"
        ".type ebpfMonSeccompProbed,%function\n"
#if defined(__x86_64__)
        "ebpfMonSeccompCall:\n"
        "    call ebpfMonSeccompProbed\n"
        "1:  ret\n"
        "ebpfMonSeccompProbed: nop\n"
        "    mov (%rsp),%rax\n"
        "    lea 1b(%rip),%rcx\n"
        "    sub %rcx,%rax\n"
        "    ret\n"
#else
        "ebpfMonSeccompCall:\n"
        "    stp x29,x30,[sp,-16]!\n"
        "    bl ebpfMonSeccompProbed\n"
        "1:  ldp x29,x30,[sp],16\n"
        "    ret\n"
        "ebpfMonSeccompProbed: nop\n"
        "    adr x1,1b\n"
        "    sub x0,x30,x1\n"
        "    ret\n"
#endif
        );
long ebpfMonSeccompCall(void);
long ebpfMonSeccompProbed(void);

/* Runs in the child. Nonzero: it survived, and the probe was there. */
static int callUnderFilter(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_URETPROBE, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_UPROBE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };
    int replaced = 0;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
        return 0;
    for (int i = 0; i < CALLS; i++)
        replaced += ebpfMonSeccompCall() != 0;
    return replaced == CALLS;
}

static int probeReturn(void *probe, pid_t child)
{
    char path[512];
    uint64_t offset;

    return ebpfMonOwnCodeFind((uint64_t)(uintptr_t)ebpfMonSeccompProbed, path, sizeof(path), &offset) ||
           ebpfMonProbeOn(probe, ebpfMonProgPutReturn, path, &offset, 1, child, 1);
}

static void removeReturn(void *probe)
{
    ebpfMonProbeOff(probe);
}

int ebpfMonSeccompTryReturn(void)
{
    ebpfMonProbe probe;
    const ebpfMonChildTrial trial = { probeReturn, removeReturn, callUnderFilter, &probe };

    return ebpfMonChildTry(&trial) == 1;
}
