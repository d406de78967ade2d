/* SPDX-License-Identifier: BSD-3-Clause */
/* See procStat.h. All files are those of proc(5). */
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "host/procRead.h"
#include "host/procStat.h"
#include "host/syscallName.h"

#define FDS_MAX 1000000 /* counted one by one */
#define THREADS_MAX 10000 /* of one process */

/* Since Linux 6.2 the size of the folder is the number in use (f1f1f2569901), with those that accept() has taken for
 * connections to come. */
static unsigned countFds(pid_t pid)
{
    char path[64];
    struct stat st;
    int *files, n;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    if (stat(path, &st) == 0 && st.st_size > 0)
        return st.st_size < UINT_MAX ? (unsigned)st.st_size : UINT_MAX;
    n = ebpfMonProcListNumbers(pid, "fd", FDS_MAX, &files);
    free(files);
    return n > 0 ? (unsigned)n : 0;
}

static unsigned readFileLimit(pid_t pid)
{
    char buf[4096];
    struct rlimit files;
    uint64_t limit;

    if (prlimit(pid, RLIMIT_NOFILE, NULL, &files) == 0) /* a tenth of what the file costs, if we may: same user, or
                                                         * CAP_SYS_RESOURCE */
        return files.rlim_cur < UINT_MAX ? (unsigned)files.rlim_cur : 0;
    ebpfMonProcReadText(pid, "limits", buf, sizeof(buf));
    limit = ebpfMonProcFindNumber(buf, "\nMax open files", 0); /* "unlimited": 0 */
    return limit < UINT_MAX ? (unsigned)limit : 0;
}

unsigned ebpfMonProcFilesLeft(unsigned *limit)
{
    unsigned used = countFds(getpid());
    struct rlimit files;

    *limit = getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur > UINT_MAX ? UINT_MAX : (unsigned)files.rlim_cur;
    return *limit > used ? *limit - used : 0;
}

double ebpfMonProcUptime(uint64_t start, uint64_t at)
{
    struct timespec boot;
    double uptime;

    clock_gettime(CLOCK_BOOTTIME, &boot);
    uptime = (double)boot.tv_sec + (double)boot.tv_nsec / 1e9 - ((double)ebpfMonClockMonotonic() - (double)at) / 1e9 -
             (double)start / (double)sysconf(_SC_CLK_TCK);
    return uptime > 0 ? uptime : 0;
}

int ebpfMonProcStatGet(pid_t pid, ebpfMonProcStat *s)
{
    unsigned long long utime, stime, start;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    char buf[1024];
    const char *p;
    long threads, rss;

    if (ebpfMonProcReadText(pid, "stat", buf, sizeof(buf)) <= 0)
        return -1;
    p = ebpfMonProcFindField(buf, 3);
    /* fields 3 to 24: state, ten that are not needed, utime, stime, four, num_threads, one, starttime, vsize, rss */
    if (!p || sscanf(p, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s %ld %*s %llu %*s "
                     "%ld", &s->state, &utime, &stime, &threads, &start, &rss) != 6)
        return -1;
    s->start = start;
    s->cpu = (double)(utime + stime) / ticks;
    s->uptime = ebpfMonProcUptime(start, ebpfMonClockMonotonic());
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
    char buf[1024], wchan[64] = "", call[32] = "";
    const char *p, *end;
    size_t n;
    char *q;
    long number;

    if (ebpfMonProcReadTask(pid, tid, "stat", buf, sizeof(buf)) <= 0)
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

        ebpfMonProcReadTask(pid, tid, "syscall", text, sizeof(text)); /* "running", or the number and its arguments */
        number = strtol(text, &q, 10);
        if (q > text && number >= 0)
            ebpfMonSyscallName(number, call, sizeof(call));
        ebpfMonProcReadTask(pid, tid, "wchan", wchan, sizeof(wchan));
        if (strcmp(wchan, "0") == 0)
            wchan[0] = 0;
    }
    snprintf(what, size, "%s%s%s%s%s%s", getStateName(end[2]), call[0] ? " in " : "", call, wchan[0] ? " (" : "", wchan,
             wchan[0] ? ")" : "");
    return 0;
}

int ebpfMonProcStandsStill(pid_t pid, pid_t tid)
{
    char state = ebpfMonProcThreadState(pid, tid);

    return state == 'T' || state == 't';
}

/* Nonzero: this file of a control group can be read, and has the text in its first 200 bytes. */
static int fileSays(const char *place, const char *group, const char *text)
{
    char file[4200], state[200];
    size_t n;
    FILE *f;

    snprintf(file, sizeof(file), place, group);
    f = fopen(file, "re");
    if (!f)
        return 0;
    n = fread(state, 1, sizeof(state) - 1, f);
    state[n] = 0;
    fclose(f);
    return strstr(state, text) != NULL;
}

/* cgroup-v1/freezer-subsystem.rst, cgroup-v2.rst. */
int ebpfMonProcIsFrozen(pid_t pid)
{
    static const char freezer[] = ":freezer:";
    char groups[4096], *line, *rest = groups;

    if (ebpfMonProcReadText(pid, "cgroup", groups, sizeof(groups)) <= 0)
        return 0;
    while ((line = strsep(&rest, "\n")) != NULL) {
        const char *old = strstr(line, freezer), *group = old ? old + strlen(freezer) : line + strlen("0::");

        if ((!old && strncmp(line, "0::", 3) != 0) || strcmp(group, "/") == 0)
            continue;
        if (old ? fileSays("/sys/fs/cgroup/freezer%s/freezer.state", group, "FROZEN") :
                  fileSays("/sys/fs/cgroup%s/cgroup.events", group, "frozen 1") ||
                  fileSays("/sys/fs/cgroup/unified%s/cgroup.events", group, "frozen 1"))
            return 1;
    }
    return 0;
}

/* Lines as "[<0>] hrtimer_nanosleep+0xb5/0x1f0". */
void ebpfMonProcKernelStack(pid_t pid, pid_t tid, char *text, size_t size)
{
    char buf[2048];
    size_t used = 0;

    text[0] = 0;
    ebpfMonProcReadTask(pid, tid, "stack", buf, sizeof(buf));
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
    char buf[64];
    double sum = 0;
    int *tids, n = ebpfMonProcListNumbers(pid, "task", THREADS_MAX, &tids);

    for (int i = 0; i < n; i++)
        if (ebpfMonProcReadTask(pid, tids[i], "comm", buf, sizeof(buf)) > 0 &&
            strncmp(buf, prefix, strlen(prefix)) == 0 &&
            ebpfMonProcReadTask(pid, tids[i], "schedstat", buf, sizeof(buf)) > 0)
            sum += strtod(buf, NULL) / 1e9;
    free(tids);
    return sum;
}

uint64_t ebpfMonProcMappedPages(pid_t pid)
{
    char text[128];

    return ebpfMonProcReadText(pid, "statm", text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0; /* its first one */
}

int ebpfMonProcHasThread(pid_t pid, const char *pattern)
{
    char name[64];
    int found = 0, *tids, n = ebpfMonProcListNumbers(pid, "task", THREADS_MAX, &tids);

    for (int i = 0; !found && i < n; i++) {
        if (ebpfMonProcReadTask(pid, tids[i], "comm", name, sizeof(name)) <= 0)
            continue;
        name[strcspn(name, "\n")] = 0;
        found = fnmatch(pattern, name, 0) == 0;
    }
    free(tids);
    return found;
}
