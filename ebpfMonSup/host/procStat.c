/* SPDX-License-Identifier: BSD-3-Clause */
/* See procStat.h. All files are those of proc(5). */
#include <dirent.h>
#include <fnmatch.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "host/procStat.h"
#include "host/syscallName.h"

#define FDS_MAX 1000000 /* counted one by one */
#define THREADS_MAX 10000 /* of one process */

/* Reads the first size - 1 bytes of a file. Returns the length, -1 when it cannot. */
static ssize_t readText(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = read(fd, buf, size - 1);
    close(fd);
    buf[n > 0 ? n : 0] = 0;
    return n;
}

/* Since Linux 6.2 the size of the folder is the number in use (f1f1f2569901), with those that accept() has taken for
 * connections to come. */
static unsigned countFds(pid_t pid)
{
    char path[64];
    struct dirent *e;
    struct stat st;
    unsigned n = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    if (stat(path, &st) == 0 && st.st_size > 0)
        return st.st_size < UINT_MAX ? (unsigned)st.st_size : UINT_MAX;
    d = opendir(path);
    while (d && n < FDS_MAX && (e = readdir(d)) != NULL)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static unsigned readFileLimit(pid_t pid)
{
    static const char title[] = "\nMax open files";
    char path[64], buf[4096];
    struct rlimit files;
    const char *p;
    unsigned long limit;

    if (prlimit(pid, RLIMIT_NOFILE, NULL, &files) == 0) /* a tenth of what the file costs, if we may: same user, or
                                                         * CAP_SYS_RESOURCE */
        return files.rlim_cur < UINT_MAX ? (unsigned)files.rlim_cur : 0;
    snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
    if (readText(path, buf, sizeof(buf)) <= 0)
        return 0;
    p = strstr(buf, title);
    limit = p ? strtoul(p + sizeof(title) - 1, NULL, 10) : 0; /* "unlimited": 0 */
    return limit < UINT_MAX ? (unsigned)limit : 0;
}

unsigned ebpfMonProcFilesLeft(unsigned *limit)
{
    unsigned used = countFds(getpid());
    struct rlimit files;

    *limit = getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur > UINT_MAX ? UINT_MAX : (unsigned)files.rlim_cur;
    return *limit > used ? *limit - used : 0;
}

int ebpfMonProcStatGet(pid_t pid, ebpfMonProcStat *s)
{
    unsigned long long utime, stime, start;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    char path[64], buf[1024];
    struct timespec now;
    const char *p;
    long threads, rss;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (readText(path, buf, sizeof(buf)) <= 0)
        return -1;
    p = strrchr(buf, ')'); /* the command before it may hold anything */
    /* fields 3 to 24: state, ten that are not needed, utime, stime, four, num_threads, one, starttime, vsize, rss */
    if (!p || sscanf(p + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s %ld %*s %llu %*s "
                     "%ld", &s->state, &utime, &stime, &threads, &start, &rss) != 6)
        return -1;
    clock_gettime(CLOCK_BOOTTIME, &now);
    s->start = start;
    s->cpu = (double)(utime + stime) / ticks;
    s->uptime = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)start / ticks;
    if (s->uptime < 0)
        s->uptime = 0;
    s->rss = (double)rss * (double)sysconf(_SC_PAGESIZE);
    s->threads = threads > 0 ? (unsigned)threads : 0;
    s->fds = countFds(pid);
    s->fdLimit = readFileLimit(pid);
    return 0;
}

static const char *getStateName(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'D':
        return "in uninterruptible sleep";
    case 'T':
        return "stopped";
    case 't':
        return "stopped by a debugger";
    case 'Z':
        return "ended";
    default:
        return "waiting";
    }
}

int ebpfMonProcThread(pid_t pid, pid_t tid, char name[16], char *what, size_t size)
{
    char path[64], buf[1024], wchan[64] = "", call[32] = "";
    const char *p, *end;
    size_t n;
    char *q;
    long number;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (readText(path, buf, sizeof(buf)) <= 0)
        return -1;
    p = strchr(buf, '(');
    end = strrchr(buf, ')');
    if (!p || !end || end < p || end[1] != ' ')
        return -1;
    n = (size_t)(end - p) - 1;
    snprintf(name, 16, "%.*s", n < 15 ? (int)n : 15, p + 1);
    for (q = name; *q; q++)
        if (*q < ' ' || *q > '~')
            *q = '?';
    if (end[2] != 'R') {
        char text[256];

        snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
        if (readText(path, text, sizeof(text)) > 0) { /* "running", or the number and its arguments */
            number = strtol(text, &q, 10);
            if (q > text && number >= 0)
                ebpfMonSyscallName(number, call, sizeof(call));
        }
        snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
        if (readText(path, wchan, sizeof(wchan)) > 0 && strcmp(wchan, "0") == 0)
            wchan[0] = 0;
    }
    snprintf(what, size, "%s%s%s%s%s%s", getStateName(end[2]), call[0] ? " in " : "", call, wchan[0] ? " (" : "", wchan,
             wchan[0] ? ")" : "");
    return 0;
}

int ebpfMonProcStandsStill(pid_t pid, pid_t tid)
{
    char path[64], buf[1024];
    const char *end;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (readText(path, buf, sizeof(buf)) <= 0)
        return 0;
    end = strrchr(buf, ')');
    return end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}

/* Lines as "[<0>] hrtimer_nanosleep+0xb5/0x1f0". */
void ebpfMonProcKernelStack(pid_t pid, pid_t tid, char *text, size_t size)
{
    char path[64], buf[2048];
    size_t used = 0;

    text[0] = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stack", (int)pid, (int)tid);
    if (readText(path, buf, sizeof(buf)) <= 0)
        return;
    for (char *p = buf, *end; (p = strstr(p, "] ")) != NULL; p = end) {
        p += 2;
        end = p + strcspn(p, "+\n");
        if (used + (size_t)(end - p) + 4 > size)
            break;
        used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? " < " : "", (int)(end - p), p);
    }
}

/* schedstat has nanoseconds. stat has ticks of 10 ms, in which a thread that works in short bursts may not appear. */
double ebpfMonProcThreadsRun(pid_t pid, const char *prefix)
{
    char path[300], buf[64];
    double sum = 0;
    struct dirent *e;
    unsigned n = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    d = opendir(path);
    while (d && n++ < THREADS_MAX && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", (int)pid, e->d_name);
        if (readText(path, buf, sizeof(buf)) <= 0 || strncmp(buf, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat", (int)pid, e->d_name);
        if (readText(path, buf, sizeof(buf)) > 0)
            sum += strtod(buf, NULL) / 1e9;
    }
    if (d)
        closedir(d);
    return sum;
}

uint64_t ebpfMonProcMappedPages(pid_t pid)
{
    char path[32], text[128];

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    return readText(path, text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0; /* its first number (proc(5)) */
}

int ebpfMonProcHasThread(pid_t pid, const char *pattern)
{
    char path[300], name[64];
    struct dirent *e;
    unsigned n = 0;
    int found = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    d = opendir(path);
    while (d && !found && n++ < THREADS_MAX && (e = readdir(d)) != NULL) {
        snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", (int)pid, e->d_name);
        if (e->d_name[0] == '.' || readText(path, name, sizeof(name)) <= 0)
            continue;
        name[strcspn(name, "\n")] = 0;
        found = fnmatch(pattern, name, 0) == 0;
    }
    if (d)
        closedir(d);
    return found;
}
