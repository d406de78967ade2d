/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

#include <epicsAtomic.h>

#include "probe/linkFolder.h"

#define NAME_SIZE  16
#define PATH_FD    (1u << 14) /* BPF_F_PATH_FD */
#define CREATE     6          /* FSCONFIG_CMD_CREATE of linux/mount.h. Old libcs do not allow to include that file
                               * beside sys/mount.h */
#define CLOEXEC    1          /* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC */

/* The part of union bpf_attr for BPF_OBJ_PIN in kernel 6.5. */
struct objPin {
    uint64_t pathname;
    uint32_t bpf_fd;
    uint32_t file_flags;
    int32_t  path_fd;
    uint32_t pad[16];
};

/* See linkFolder.h. */
static struct {
    pthread_once_t once;
    int mount;    /* file descriptor of the folder; -1: there is none */
    int count;    /* atomic; number of links that were ever added. The name of a link is its number */
} folder = { .once = PTHREAD_ONCE_INIT, .mount = -1 };

static void openFolder(void)
{
    int fs = (int)syscall(SYS_fsopen, "bpf", CLOEXEC);

    if (fs < 0)
        return;
    if (syscall(SYS_fsconfig, fs, CREATE, NULL, NULL, 0) == 0)
        folder.mount = (int)syscall(SYS_fsmount, fs, CLOEXEC, 0);
    close(fs);
}

unsigned ebpfMonLinkFolderAdd(int fd)
{
    struct objPin pin;
    char name[NAME_SIZE];
    int number;

    pthread_once(&folder.once, openFolder);
    if (folder.mount < 0)
        return 0;
    number = epicsAtomicIncrIntT(&folder.count);
    snprintf(name, sizeof(name), "%u", (unsigned)number);
    memset(&pin, 0, sizeof(pin));
    pin.pathname = (uint64_t)(uintptr_t)name;
    pin.bpf_fd = (uint32_t)fd;
    pin.file_flags = PATH_FD;
    pin.path_fd = folder.mount;
    if (syscall(SYS_bpf, BPF_OBJ_PIN, &pin, sizeof(pin)))
        return 0;
    close(fd);
    return (unsigned)number;
}

void ebpfMonLinkFolderRemove(unsigned number)
{
    char name[NAME_SIZE];

    snprintf(name, sizeof(name), "%u", number);
    unlinkat(folder.mount, name, 0);
}
