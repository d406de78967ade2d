/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "device/devicePrograms.h"
#include "probe/kernelLoad.h"
#include "probe/kernelTables.h"
#include "probe/preemption.h"
#include "ebpfMonDeviceBpf.skel.h"

struct ebpfMonDevicePrograms {
    struct ebpfMonDeviceBpf *skel;
    int isLoaded; /* nonzero: the programs are loaded, and it is noted that they need roots */
};

/* 0 or a negative errno. */
static int loadDevicePrograms(ebpfMonDevicePrograms *d)
{
    int threads = ebpfMonKernelGetTableFd("threads");
    struct bpf_program *prog;
    int err;

    if (threads < 0)
        return -ENODEV;
    if (bpf_map__reuse_fd(d->skel->maps.threads, threads))
        return -errno;
    d->skel->rodata->hasCookies = ebpfMonFeature.uprobeMulti != 0;
    if (ebpfMonFeature.uprobeMulti)
        bpf_object__for_each_program(prog, d->skel->obj)
            bpf_program__set_expected_attach_type(prog, (enum bpf_attach_type)EBPFMON_ATTACH_MULTI);
    err = ebpfMonDeviceBpf__load(d->skel);
    return err ? err : ebpfMonThreadStackCheck(d->skel->obj);
}

ebpfMonDevicePrograms *ebpfMonDeviceProgramsLoad(char *why, size_t size)
{
    ebpfMonDevicePrograms *d = calloc(1, sizeof(*d));
    int err = -ENOMEM;

    if (d) {
        d->skel = ebpfMonDeviceBpf__open();
        if (d->skel)
            err = loadDevicePrograms(d);
    }
    if (!err) {
        d->isLoaded = 1;
        ebpfMonKernelNeedRoots(1);
        return d;
    }
    ebpfMonKernelExplainRefusal(err, why, size);
    ebpfMonDeviceProgramsFree(d);
    return NULL;
}

void ebpfMonDeviceProgramsFree(ebpfMonDevicePrograms *d)
{
    if (!d)
        return;
    if (d->isLoaded)
        ebpfMonKernelNeedRoots(-1);
    ebpfMonDeviceBpf__destroy(d->skel);
    free(d);
}

int ebpfMonDeviceProgramsAddProcess(ebpfMonDevicePrograms *d, pid_t pid, const struct ebpfMonDeviceConf *conf)
{
    uint32_t tgid = (uint32_t)pid;

    return bpf_map_update_elem(bpf_map__fd(d->skel->maps.deviceIocs), &tgid, conf, BPF_ANY) ? errno : 0;
}

int ebpfMonDeviceProgramsReadProcess(ebpfMonDevicePrograms *d, pid_t pid, struct ebpfMonDeviceConf *conf)
{
    uint32_t tgid = (uint32_t)pid;

    return bpf_map_lookup_elem(bpf_map__fd(d->skel->maps.deviceIocs), &tgid, conf) ? errno : 0;
}

/* Removes the elements of one process from a table. The process (tgid) is at byte "tgidAt" of the key. The loop is
 * bounded, because programs can add elements meanwhile. */
static void removeProcess(const struct bpf_map *map, uint32_t tgid, size_t tgidAt)
{
    uint8_t key[sizeof(struct ebpfMonDeviceKey)], next[sizeof(key)];
    int fd = bpf_map__fd(map), more = bpf_map_get_next_key(fd, NULL, next) == 0;

    for (unsigned n = 0; more && n < 2 * bpf_map__max_entries(map); n++) {
        memcpy(key, next, sizeof(key));
        more = bpf_map_get_next_key(fd, key, next) == 0; /* find the next key before this one is deleted; else the
                                                          * kernel would begin again with the first key */
        if (memcmp(key + tgidAt, &tgid, sizeof(tgid)) == 0)
            bpf_map_delete_elem(fd, key);
    }
}

void ebpfMonDeviceProgramsRemoveProcess(ebpfMonDevicePrograms *d, pid_t pid)
{
    uint32_t tgid = (uint32_t)pid;

    bpf_map_delete_elem(bpf_map__fd(d->skel->maps.deviceIocs), &tgid);
    removeProcess(d->skel->maps.deviceFunctions, tgid, offsetof(struct ebpfMonDeviceFunction, tgid));
    removeProcess(d->skel->maps.deviceUsers, tgid, offsetof(struct ebpfMonDeviceKey, tgid));
}

int ebpfMonDeviceProgramsProbe(ebpfMonDevicePrograms *d, ebpfMonDeviceSite site, const ebpfMonUprobePlaces *place,
                               ebpfMonProbe probe[2], unsigned *count)
{
    const struct ebpfMonDeviceBpf *skel = d->skel;
    struct bpf_program *prog = site == ebpfMonDeviceQueue ? skel->progs.ebpfmon_device_queue
        : site == ebpfMonDeviceServe ? skel->progs.ebpfmon_device_end : skel->progs.ebpfmon_device_timeout;
    int err;

    *count = 0;
    /* the probe at the return comes first: so no begin stays without its end */
    err = ebpfMonUprobeSet(prog, place, site == ebpfMonDeviceServe, probe, count);
    if (err || site != ebpfMonDeviceServe)
        return err;
    err = ebpfMonUprobeSet(skel->progs.ebpfmon_device_begin, place, 0, probe, count);
    if (err) {
        ebpfMonCloserClose(probe, 1);
        *count = 0;
    }
    return err;
}

void ebpfMonDeviceProgramsEachFunction(ebpfMonDevicePrograms *d,
                                       void (*each)(void *arg, const struct ebpfMonDeviceFunction *function), void *arg)
{
    struct ebpfMonDeviceFunction key, next;
    int fd = bpf_map__fd(d->skel->maps.deviceFunctions), more = bpf_map_get_next_key(fd, NULL, &next) == 0;

    for (unsigned n = 0; more && n < EBPFMON_DEVICE_FUNCTIONS; n++) {
        key = next;
        each(arg, &key);
        more = bpf_map_get_next_key(fd, &key, &next) == 0;
    }
}

void ebpfMonDeviceProgramsEachUser(ebpfMonDevicePrograms *d,
                                   void (*each)(void *arg, const struct ebpfMonDeviceKey *key,
                                                const struct ebpfMonDeviceStat *stat), void *arg)
{
    struct ebpfMonDeviceKey key, next;
    struct ebpfMonDeviceStat stat;
    int fd = bpf_map__fd(d->skel->maps.deviceUsers), more = bpf_map_get_next_key(fd, NULL, &next) == 0;

    for (unsigned n = 0; more && n < EBPFMON_DEVICE_USERS; n++) {
        key = next;
        if (bpf_map_lookup_elem(fd, &key, &stat) == 0)
            each(arg, &key, &stat);
        more = bpf_map_get_next_key(fd, &key, &next) == 0;
    }
}

void ebpfMonDeviceProgramsReadCounts(ebpfMonDevicePrograms *d, struct ebpfMonDeviceCounts *counts)
{
    uint32_t zero = 0;

    ebpfMonPerCpuSum(d->skel->maps.deviceCounts, &zero, counts, sizeof(*counts));
}
