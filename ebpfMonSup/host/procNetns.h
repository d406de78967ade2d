/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In which network and which container a process lives. As procInfo.h: every function can fail because the process is
 * gone; none keeps a file open.
 */
#ifndef EBPFMON_PROCNETNS_H
#define EBPFMON_PROCNETNS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Inode of the network namespace of a process; 0: gone, or not ours to look at. */
uint32_t ebpfMonProcNetns(pid_t pid);

typedef struct {
    uint32_t netns;
    pid_t    pid;     /* the first process of the given list that lives in it */
} ebpfMonNetns;

/* Nonzero: "netns" is our own network namespace, or that of this process, and belongs to our own user namespace: nobody
 * without privileges has made it, to write packets there. */
int ebpfMonProcIsOurNetns(pid_t pid, uint32_t netns);

/* The different network namespaces of these processes, in their order. Returns the number, -1: no memory; *list is
 * malloc'ed for the caller. */
int ebpfMonProcNetnsList(const pid_t *pids, size_t count, ebpfMonNetns **list);

/* The container of a process: 12 digits of its id as docker ps and crictl show it, or the name of an LXC container
 * or machine; of containers in one another the outermost. "" when it is in none, or when somebody else than root of
 * this host has chosen the name. Returns nonzero when it is in one. */
int ebpfMonProcContainer(pid_t pid, char *buf, size_t size);

/* Nonzero: only root can make cgroups in this folder of a hierarchy. "controllers": those of the hierarchy; "": that of
 * cgroup v2. "folder": its path there, "" for the root. */
typedef int (*ebpfMonCgroupJudge)(const char *controllers, const char *folder);

/* … from the text of /proc/PID/cgroup. */
int ebpfMonContainerParse(const char *cgroup, ebpfMonCgroupJudge isRoots, char *buf, size_t size);

#endif
