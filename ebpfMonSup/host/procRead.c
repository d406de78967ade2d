/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <linux/nsfs.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/shares.h"
#include "ebpfMonEvent.h"
#include "host/procRead.h"

/* --- who pays --- */

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

/* Nonzero: it is our user namespace, which we never change. The kernel makes an inode for each look at one. */
static int isOwnNumber(ino_t number)
{
    static ino_t known; /* 0: not asked yet */
    ino_t own = __atomic_load_n(&known, __ATOMIC_RELAXED);
    struct stat st;

    if (!own && stat("/proc/self/ns/user", &st) == 0)
        __atomic_store_n(&known, own = st.st_ino, __ATOMIC_RELAXED);
    return own && own == number;
}

static int isOwn(int file)
{
    struct stat st;

    return fstat(file, &st) == 0 && isOwnNumber(st.st_ino);
}

/* Nonzero: the process is in our user namespace. Most are, and this is asked for each new process. */
static int isInOwn(pid_t pid)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    return stat(path, &st) == 0 && isOwnNumber(st.st_ino);
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
    uid_t maker = isInOwn(pid) ? NOBODY : findMaker(openNamespace(pid, "user"), &isOurs);

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

/* --- reading --- */

#define MAX_PROCS (1u << 22) /* PID_MAX_LIMIT of the kernel */
#define FORKED 0x40 /* PF_FORKNOEXEC of the kernel's linux/sched.h */

ssize_t ebpfMonProcReadFile(const char *path, char *buf, size_t size)
{
    size_t got = 0;
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC), err;

    while (fd >= 0 && got < size - 1 && (n = read(fd, buf + got, size - 1 - got)) > 0)
        got += (size_t)n;
    buf[got] = 0;
    err = errno;
    if (fd >= 0)
        close(fd);
    errno = err;
    return n < 0 && !got ? -1 : (ssize_t)got;
}

ssize_t ebpfMonProcReadText(pid_t pid, const char *name, char *buf, size_t size)
{
    char path[64] = "/proc/self";

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", name);
    return ebpfMonProcReadFile(path, buf, size);
}

ssize_t ebpfMonProcReadTask(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "task/%d/%s", (int)tid, name);
    return ebpfMonProcReadText(pid, path, buf, size);
}

ssize_t ebpfMonProcReadLink(pid_t pid, const char *name, char *buf, size_t size)
{
    char path[64];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    n = readlink(path, buf, size - 1);
    buf[n > 0 ? n : 0] = 0;
    return n;
}

uint64_t ebpfMonProcFindNumber(const char *text, const char *name, uint64_t otherwise)
{
    const char *p = strstr(text, name);
    char *end;
    uint64_t n = p ? strtoull(p + strlen(name), &end, 10) : 0;

    return p && end != p + strlen(name) ? n : otherwise;
}

static int compareNumbers(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return x < y ? -1 : x > y;
}

static int listNumbers(const char *folder, unsigned most, int **numbers)
{
    size_t n = 0, room = 0;
    DIR *dir = opendir(folder);
    struct dirent *entry;

    *numbers = NULL;
    if (!dir)
        return -1;
    while (n < most && (entry = readdir(dir)) != NULL) {
        char *end;
        long number = isdigit((unsigned char)entry->d_name[0]) ? strtol(entry->d_name, &end, 10) : -1;

        if (number < 0 || number > INT_MAX || *end)
            continue;
        if (ebpfMonArrayGrow(numbers, &room, n + 1, 512, sizeof(**numbers))) {
            free(*numbers);
            *numbers = NULL;
            closedir(dir);
            return -1;
        }
        (*numbers)[n++] = (int)number;
    }
    closedir(dir);
    if (n)
        qsort(*numbers, n, sizeof(**numbers), compareNumbers);
    return (int)n;
}

int ebpfMonProcList(pid_t **pids)
{
    return listNumbers("/proc", MAX_PROCS, pids);
}

int ebpfMonProcListNumbers(pid_t pid, const char *folder, unsigned most, int **numbers)
{
    char path[48];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, folder);
    return listNumbers(path, most, numbers);
}

const char *ebpfMonProcFindField(const char *stat, int field)
{
    const char *p = strrchr(stat, ')'); /* the command before it may hold anything, blanks and ')' too */

    for (int at = 2; p && at < field; at++)
        p = strchr(p + 1, ' ');
    return p;
}

static uint64_t getField(const char *stat, int field)
{
    const char *p = ebpfMonProcFindField(stat, field);

    return p ? strtoull(p, NULL, 10) : 0;
}

/* The start time; 0: it is a zombie. */
static uint64_t getStart(const char *stat)
{
    const char *state = ebpfMonProcFindField(stat, 3);

    /* its first thread alone may have ended: then others are counted */
    if (state && state[1] == 'Z' && getField(stat, 20) <= 1)
        return 0;
    return getField(stat, 22);
}

/* From startcode, endcode and startstack, which are 0 or 1 for those who may not trace it (fs/proc/array.c). */
static uint64_t getProgram(const char *stat)
{
    uint64_t stack = getField(stat, 28);

    return stack ? stack + getField(stat, 26) + getField(stat, 27) : 0;
}

char ebpfMonProcThreadState(pid_t pid, pid_t tid)
{
    char buf[1024];
    const char *p = ebpfMonProcReadTask(pid, tid, "stat", buf, sizeof(buf)) > 0 ? ebpfMonProcFindField(buf, 3) : NULL;

    return p ? p[1] : 0;
}

uint64_t ebpfMonProcStart(pid_t pid)
{
    char buf[1024];

    return ebpfMonProcReadText(pid, "stat", buf, sizeof(buf)) > 0 ? getStart(buf) : 0;
}

int ebpfMonProcIsOther(pid_t pid, uint32_t start)
{
    uint64_t now = start ? ebpfMonProcStart(pid) : 0;
    int32_t later = (int32_t)((uint32_t)((int64_t)now - ebpfMonClockGetBootOffset() / EBPFMON_TICK_NS) - start);

    return now && (later < -1 || later > 1); /* they may be rounded */
}

uint64_t ebpfMonProcProgram(pid_t pid)
{
    char buf[1024];

    return ebpfMonProcReadText(pid, "stat", buf, sizeof(buf)) > 0 ? getProgram(buf) : 0;
}

pid_t ebpfMonProcForkedFrom(pid_t pid)
{
    char buf[1024];

    if (ebpfMonProcReadText(pid, "stat", buf, sizeof(buf)) <= 0 || !(getField(buf, 9) & FORKED))
        return 0;
    return (pid_t)getField(buf, 4);
}

int ebpfMonProcRuns(pid_t pid, uint64_t start, uint64_t program)
{
    uint64_t now;
    char buf[1024];

    errno = 0;
    if (ebpfMonProcReadText(pid, "stat", buf, sizeof(buf)) <= 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    now = getProgram(buf);
    return start && getStart(buf) == start && (!program || !now || now == program);
}

int ebpfMonProcLives(pid_t pid, uint64_t start)
{
    return ebpfMonProcRuns(pid, start, 0);
}

uint64_t ebpfMonProcOwnMemory(pid_t pid)
{
    unsigned long resident, shared;
    char buf[128];

    if (ebpfMonProcReadText(pid, "statm", buf, sizeof(buf)) <= 0 || sscanf(buf, "%*u %lu %lu", &resident, &shared) != 2)
        return 0;
    return resident > shared ? (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uid_t ebpfMonProcOwner(pid_t pid)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &st) ? 0 : st.st_uid;
}
