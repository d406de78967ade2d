/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into the monitor: notes each file, each name service, each read of another process and each job for one
 * (ebpfMonForeignRun) that a thread asks for while it holds a mutex that libebpfMon has made. Mutexes of EPICS Base and
 * of the C library do not count. A line of the file that LOCK_WATCH names:
 *
 *     CALL WHAT | FILE:LINE of each mutex | the functions that called, the innermost first
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <netdb.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define HELD_MAX 32
#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* What begins each mutex of Base (epicsMutex.cpp). */
typedef struct {
    void *next, *previous, *id;
    const char *file;
    int line;
} mutexHead;

static __thread const mutexHead *held[HELD_MAX];
static __thread int count, isReporting;

static int isOurs(const mutexHead *mutex)
{
    Dl_info info;

    return dladdr(mutex->file, &info) && info.dli_fname && strstr(info.dli_fname, "libebpfMon");
}

/* The functions that called, from the third frame on: the first two are ours. Returns the length of the line. */
static int addCallers(char *line, int n, int size)
{
    void *frame[24];
    int depth = backtrace(frame, 24);

    for (int i = 2; i < depth && n < size - 200; i++) {
        Dl_info info;

        if (!dladdr(frame[i], &info))
            continue;
        if (info.dli_sname)
            n += snprintf(line + n, (size_t)(size - n), " %.90s", info.dli_sname);
        else if (info.dli_fname && strstr(info.dli_fname, "libebpfMon"))
            n += snprintf(line + n, (size_t)(size - n), " +0x%lx",
                          (unsigned long)((char *)frame[i] - (char *)info.dli_fbase));
    }
    return n;
}

static void report(const char *call, const char *what)
{
    char line[4096];
    int n, out;

    if (!count || isReporting)
        return;
    isReporting = 1;
    n = snprintf(line, sizeof(line), "%s %.200s |", call, what);
    for (int i = 0; i < count && n < 2000; i++)
        n += snprintf(line + n, sizeof(line) - (size_t)n, " %.60s:%d", held[i]->file, held[i]->line);
    n += snprintf(line + n, sizeof(line) - (size_t)n, " |");
    n = addCallers(line, n, sizeof(line));
    line[n++] = '\n';
    out = open(getenv("LOCK_WATCH"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (out < 0 || write(out, line, (size_t)n) != n)
        abort(); /* a line that is missing would look like a good result */
    close(out);
    isReporting = 0;
}

static void noteLock(int status, const mutexHead *mutex)
{
    if (status || !isOurs(mutex))
        return;
    if (count == HELD_MAX)
        abort();
    held[count++] = mutex;
}

int epicsMutexLock(void *mutex)
{
    static int (*next)(void *);
    int status;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "epicsMutexLock");
    status = next(mutex);
    noteLock(status, mutex);
    return status;
}

int epicsMutexTryLock(void *mutex)
{
    static int (*next)(void *);
    int status;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "epicsMutexTryLock");
    status = next(mutex);
    noteLock(status, mutex);
    return status;
}

void epicsMutexUnlock(void *mutex)
{
    static void (*next)(void *);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "epicsMutexUnlock");
    for (int i = count - 1; i >= 0; i--)
        if (held[i] == mutex) {
            memmove(&held[i], &held[i + 1], (size_t)(count - i - 1) * sizeof(held[0]));
            count--;
            break;
        }
    next(mutex);
}

int open(const char *path, int flags, ...)
{
    NEXT(open);
    va_list ap;
    int mode;

    va_start(ap, flags);
    mode = va_arg(ap, int);
    va_end(ap);
    report("open", path);
    return next(path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    NEXT(openat);
    va_list ap;
    int mode;

    va_start(ap, flags);
    mode = va_arg(ap, int);
    va_end(ap);
    report("openat", path);
    return next(at, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    NEXT(fopen);

    report("fopen", path);
    return next(path, mode);
}

DIR *opendir(const char *path)
{
    NEXT(opendir);

    report("opendir", path);
    return next(path);
}

ssize_t readlink(const char *path, char *buf, size_t size)
{
    NEXT(readlink);

    report("readlink", path);
    return next(path, buf, size);
}

int stat(const char *path, struct stat *st)
{
    NEXT(stat);

    report("stat", path);
    return next(path, st);
}

int lstat(const char *path, struct stat *st)
{
    NEXT(lstat);

    report("lstat", path);
    return next(path, st);
}

int access(const char *path, int mode)
{
    NEXT(access);

    report("access", path);
    return next(path, mode);
}

ssize_t read(int fd, void *buf, size_t size)
{
    static ssize_t (*next)(int, void *, size_t);
    struct stat st;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "read");
    if (count && !isReporting && !fstat(fd, &st) && S_ISREG(st.st_mode))
        report("read", "");
    return next(fd, buf, size);
}

int getpwuid_r(uid_t uid, struct passwd *pw, char *buf, size_t size, struct passwd **result)
{
    NEXT(getpwuid_r);

    report("getpwuid_r", "");
    return next(uid, pw, buf, size, result);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    NEXT(getaddrinfo);

    report("getaddrinfo", name ? name : "");
    return next(name, service, hints, result);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nto, const struct iovec *from,
                         unsigned long nfrom, unsigned long flags)
{
    NEXT(process_vm_readv);

    report("process_vm_readv", "");
    return next(pid, to, nto, from, nfrom, flags);
}

int ebpfMonForeignRun(pid_t pid, double seconds, const void *job, void *data)
{
    static int (*next)(pid_t, double, const void *, void *);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "ebpfMonForeignRun");
    report("job", "");
    return next(pid, seconds, job, data);
}
