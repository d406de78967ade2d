/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/nsfs.h>

#include "common/shares.h"
#include "host/procRead.h"
#include "host/procPayer.h"

#define NOBODY ((uid_t)-1)
#define DEPTH  33 /* user namespaces in one another, at most (create_user_ns(), kernel/user_namespace.c) */

static int openNamespace(pid_t pid, const char *name)
{
    char path[48] = "/proc/self";

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    snprintf(path + strlen(path), sizeof(path) - strlen(path), "/ns/%s", name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int isOwn(int file)
{
    struct stat own, st;

    return stat("/proc/self/ns/user", &own) == 0 && fstat(file, &st) == 0 && own.st_ino == st.st_ino;
}

/* The user who made this user namespace, or the outermost one around it that no system user has made. NOBODY: there is
 * none; *isOurs: it is ours. Closes the file. */
static uid_t findMaker(int file, int *isOurs)
{
    uid_t maker = NOBODY, uid;

    *isOurs = file >= 0 && isOwn(file);
    for (int depth = 0; file >= 0 && depth < DEPTH && !isOwn(file); depth++) {
        int parent;

        if (ioctl(file, NS_GET_OWNER_UID, &uid) == 0 && uid >= EBPFMON_SYSTEM_USERS)
            maker = uid;
        parent = ioctl(file, NS_GET_PARENT);
        close(file);
        file = parent;
    }
    if (file >= 0)
        close(file);
    return maker;
}

uid_t ebpfMonProcPayer(pid_t pid)
{
    int isOurs;
    uid_t maker = findMaker(openNamespace(pid, "user"), &isOurs);

    return maker == NOBODY ? ebpfMonProcOwner(pid) : maker;
}

uid_t ebpfMonProcNetnsPayer(pid_t pid)
{
    int isOurs, net = openNamespace(pid, "net");
    uid_t maker = findMaker(net < 0 ? -1 : ioctl(net, NS_GET_USERNS), &isOurs);

    if (net >= 0)
        close(net);
    return maker != NOBODY ? maker : isOurs ? 0 : ebpfMonProcOwner(pid);
}
