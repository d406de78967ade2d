/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/array.h"
#include "common/text.h"
#include "host/foreign.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "host/tcpSockets.h"

/* --- identity and status --- */

/* All files are those of proc(5); each is read once, in one piece and up to a limit. */

#define MAX_ENVIRON (1u << 20)
#define MAX_CMDLINE (64u * 1024u)
#define MAX_ARGS    64u            /* arguments looked at */
#define ENVIRONMENT_MAX 1000000    /* bytes */
#define TEXT_SECONDS 0.25          /* for the arguments, for the environment, and for a path */

/* The same for a file whose content is memory of the process, which may never arrive. */
static ssize_t readMemoryText(pid_t pid, const char *name, char *buf, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return ebpfMonForeignReadFile(pid, path, TEXT_SECONDS, buf, size);
}

typedef struct {
    char  path[PATH_MAX + 32];
    ino_t inode;
} pathLook;

static void lookAtPath(void *data)
{
    pathLook *look = data;
    struct stat st;

    look->inode = stat(look->path, &st) ? 0 : st.st_ino;
}

/* The inode of what a path of the process leads to, perhaps on a file system that never answers; 0: to nothing. */
static uint64_t findInode(pid_t pid, const char *path)
{
    static const ebpfMonForeignJob job = { lookAtPath, free };
    pathLook *look = malloc(sizeof(*look));
    uint64_t inode;

    if (!look)
        return 0;
    snprintf(look->path, sizeof(look->path), "%s", path);
    if (ebpfMonForeignRun(pid, TEXT_SECONDS, &job, look))
        return 0;
    inode = look->inode;
    free(look);
    return inode;
}

uint64_t ebpfMonProcProgramInode(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return findInode(pid, path);
}

int ebpfMonProcSeccomp(pid_t pid)
{
    char buf[8192];

    if (ebpfMonProcReadText(pid, "status", buf, sizeof(buf)) <= 0)
        return -1;

    const char *p = strstr(buf, "\nSeccomp:");

    return p ? atoi(p + sizeof("\nSeccomp:") - 1) : 0; /* a kernel without seccomp does not print it */
}

uint64_t ebpfMonProcCapabilities(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

    /* not from /proc: no file may be left to open */
    return syscall(SYS_capget, &head, data) ? 0 : (uint64_t)data[1].permitted << 32 | data[0].permitted;
}

int ebpfMonProcIsUnderValgrind(pid_t pid)
{
    char exe[512];

    ebpfMonProcReadLink(pid, "exe", exe, sizeof(exe));
    return strstr(exe, "/valgrind/") != NULL; /* its tools live in libexec/valgrind */
}

/* The arguments, or the environment, as pointers into "buf"; returns their number. */
static unsigned splitStrings(char *buf, ssize_t length, const char **strings, unsigned max)
{
    unsigned n = 0;

    for (ssize_t at = 0; at < length && n < max; at += (ssize_t)strlen(buf + at) + 1)
        strings[n++] = buf + at;
    return n;
}

static const char *findBaseName(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int fitsName(const char *pattern, const char *text, size_t length)
{
    return strlen(pattern) == length && !strncmp(pattern, text, length);
}

/* How interpreters take options: letters whose value is the rest of the word or the next one ("values"),
 * the rest of the word only ("glued"), program text ("code") or a module ("module"). */
static const struct {
    const char *name, *values, *glued, *code, *module;
} interpreters[] = {
    { "python", "WX", "", "c", "m" }, { "pypy", "WX", "", "c", "m" },
    { "perl", "I", "0CDFMVdilmx", "eE", "" }, { "ruby", "ICEr", "0FKTWix", "e", "" },
    { "node", "r", "", "ep", "" }, { "lua", "l", "", "e", "" }, { "tclsh", "", "", "", "" },
    { "sh", "oO", "", "c", "" }, { "bash", "oO", "", "c", "" }, { "dash", "o", "", "c", "" },
    { "ksh", "o", "", "c", "" }, { "zsh", "o", "", "c", "" },
};

/* java's options are words: those that have a value in the next one. */
static const char *const javaValues[] = {
    "-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules", "--add-opens",
    "--add-exports", "--add-reads", "--upgrade-module-path",
};

static const char *findJavaProgram(const char **args, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        if (!strcmp(args[i], "-jar") || !strcmp(args[i], "-m") || !strcmp(args[i], "--module"))
            return i + 1 < n ? args[i + 1] : NULL;
        if (args[i][0] != '-')
            return args[i];
        for (size_t k = 0; k < sizeof(javaValues) / sizeof(javaValues[0]); k++) {
            if (!strcmp(args[i], javaValues[k])) {
                i++;
                break;
            }
        }
    }
    return NULL;
}

/* The script or module that an interpreter runs; NULL: the program is not an interpreter, or runs no script. */
static const char *findScript(const char **args, unsigned n)
{
    const char *name = findBaseName(args[0]);
    size_t length = strlen(name), k = 0, count = sizeof(interpreters) / sizeof(interpreters[0]);

    while (length && (isdigit((unsigned char)name[length - 1]) || name[length - 1] == '.'))
        length--; /* python3.11 */
    if (fitsName("java", name, length))
        return findJavaProgram(args, n);
    while (k < count && !fitsName(interpreters[k].name, name, length))
        k++;
    if (k == count)
        return NULL;
    for (unsigned i = 1; i < n; i++) {
        const char *p = args[i];

        if (p[0] != '-')
            return p[0] ? p : NULL;
        if (p[1] == '-' && p[2])
            continue;
        if (p[1] == '-' || !p[1])
            return p[1] && i + 1 < n ? args[i + 1] : NULL; /* "--" ends the options, "-" is stdin */
        while (*++p && !strchr(interpreters[k].glued, *p)) {
            if (strchr(interpreters[k].code, *p))
                return NULL;
            if (strchr(interpreters[k].module, *p))
                return p[1] ? p + 1 : i + 1 < n ? args[i + 1] : NULL;
            if (strchr(interpreters[k].values, *p)) {
                i += !p[1];
                break;
            }
        }
    }
    return NULL;
}

/* Name of argv[0] for people: no path, no login shell's '-', not what a daemon appends after ": ". */
static void copyCommand(char *buf, size_t size, const char *argv0)
{
    const char *colon = strstr(argv0, ": "), *end = colon ? colon : argv0 + strlen(argv0), *begin = end;

    while (begin > argv0 && begin[-1] != '/')
        begin--;
    begin += *begin == '-' && begin + 1 < end;
    ebpfMonTextCopyBytes(buf, size, begin, (size_t)(end - begin));
}

/* Command from the arguments; both: interpreter and script, else the script alone. */
static int copyProgram(pid_t pid, const char **args, unsigned n, int both, char *buf, size_t size)
{
    const char *script = n ? findScript(args, n) : NULL;

    buf[0] = 0;
    if (n && (both || !script))
        copyCommand(buf, size, args[0]);
    if (script) {
        char text[256];

        snprintf(text, sizeof(text), "%s%s%s", buf, buf[0] ? " " : "", findBaseName(script));
        ebpfMonTextCopyBytes(buf, size, text, strlen(text));
    }
    if (!buf[0]) {
        char comm[64];
        ssize_t length = ebpfMonProcReadText(pid, "comm", comm, sizeof(comm));

        if (length <= 0)
            return -1;
        ebpfMonTextCopyBytes(buf, size, comm, strcspn(comm, "\n"));
    }
    return 0;
}

/* Last component of the folder of the absolute path, "." and ".." resolved as text: the folder may be
 * in another mount namespace. 0 when there is none. */
static size_t findFolderName(const char *path, const char **name)
{
    const char *stack[PATH_MAX / 2];
    size_t depth = 0;

    for (const char *p = path; *p; ) {
        size_t n = strcspn(p, "/");

        if (n == 2 && !strncmp(p, "..", 2))
            depth -= depth > 0;
        else if (n && !(n == 1 && *p == '.') && depth < PATH_MAX / 2)
            stack[depth++] = p;
        p += n + (p[n] == '/');
    }
    if (depth < 2)
        return 0;
    *name = stack[depth - 2];
    return strcspn(*name, "/");
}

/* Name of the folder of the start-up script. An IOC often changes its folder in the script, so a relative
 * path that leads nowhere from the present one is taken from the one where the process was started. */
static int copyFolder(pid_t pid, const char *script, const char *pwd, char *buf, size_t size)
{
    char link[PATH_MAX + 32], folder[PATH_MAX] = "", path[2 * PATH_MAX];
    const char *name;

    if (script[0] != '/') {
        ebpfMonProcReadLink(pid, "cwd", folder, sizeof(folder));
        snprintf(link, sizeof(link), "/proc/%d/cwd/%s", (int)pid, script);
        if (pwd && pwd[0] == '/' && !findInode(pid, link))
            snprintf(folder, sizeof(folder), "%s", pwd);
        if (!folder[0])
            return 0;
    }
    snprintf(path, sizeof(path), "%s/%s", folder, script);

    size_t length = findFolderName(path, &name);

    if (!length)
        return 0;
    ebpfMonTextCopyBytes(buf, size, name, length);
    return 1;
}

void ebpfMonProcReadVariable(pid_t pid, const char *name, char *value, size_t size)
{
    char path[40], *text = malloc(ENVIRONMENT_MAX);
    size_t n = strlen(name), at = 0, bytes = 0;

    value[0] = 0;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (text) {
        ssize_t got = ebpfMonForeignReadFile(pid, path, TEXT_SECONDS, text, ENVIRONMENT_MAX);

        bytes = got > 0 ? (size_t)got : 0;
    }
    for (; at < bytes; at += strnlen(text + at, bytes - at) + 1)
        if (strncmp(text + at, name, n) == 0 && text[at + n] == '=')
            snprintf(value, size, "%s", text + at + n + 1);
    free(text);
}

/* Finds the IOC's name and PWD in the environment; NULL: not there or empty. The name is IOC. In the containers of
 * epics-containers this is a path, the same in all, and the name is IOC_NAME. */
static void findEnvironment(const char *environment, size_t length, const char **ioc, const char **pwd)
{
    const char *name = NULL;

    for (size_t at = 0; at < length; at += strlen(environment + at) + 1) {
        const char *p = environment + at;

        if (!*ioc && !strncmp(p, "IOC=", 4) && p[4])
            *ioc = p + 4;
        else if (!name && !strncmp(p, "IOC_NAME=", 9) && p[9])
            name = p + 9;
        else if (!*pwd && !strncmp(p, "PWD=", 4) && p[4])
            *pwd = p + 4;
    }
    if (name && (!*ioc || **ioc == '/'))
        *ioc = name;
}

int ebpfMonProcIocName(pid_t pid, char *buf, size_t size)
{
    const char *args[MAX_ARGS], *ioc = NULL, *pwd = NULL;
    char *text = malloc(MAX_ENVIRON + MAX_CMDLINE);
    int result = -1;

    if (!size || !text) {
        free(text);
        return -1;
    }
    buf[0] = 0;

    char *environment = text + MAX_CMDLINE;
    ssize_t nText = readMemoryText(pid, "cmdline", text, MAX_CMDLINE);
    ssize_t nEnvironment = readMemoryText(pid, "environ", environment, MAX_ENVIRON);
    int isDenied = nEnvironment < 0 && (errno == EACCES || errno == EPERM);
    unsigned n = splitStrings(text, nText, args, MAX_ARGS);

    if (nText >= 0) {
        if (nEnvironment > 0)
            findEnvironment(environment, (size_t)nEnvironment, &ioc, &pwd);
        if (ioc) {
            ebpfMonTextCopyBytes(buf, size, ioc, strlen(ioc));
            result = 0;
        }
        for (unsigned i = 1; result && i < n; i++) {
            size_t length = strlen(args[i]);

            if (length > 4 && !strcmp(args[i] + length - 4, ".cmd")) {
                result = copyFolder(pid, args[i], pwd, buf, size) ? 0 : -1;
                break;
            }
        }
        if (result)
            result = copyProgram(pid, args, n, 0, buf, size);
    }
    free(text);
    return result == 0 ? isDenied : result;
}

int ebpfMonProcCommand(pid_t pid, char *buf, size_t size)
{
    const char *args[MAX_ARGS];
    char *text = malloc(MAX_CMDLINE);
    int result = -1;

    if (size)
        buf[0] = 0;
    if (size && text) {
        ssize_t nText = readMemoryText(pid, "cmdline", text, MAX_CMDLINE);

        if (nText >= 0)
            result = copyProgram(pid, args, splitStrings(text, nText, args, MAX_ARGS), 1, buf, size);
    }
    free(text);
    return result;
}

/* --- the other end of a connection --- */

/*
 * TCP connections, and who owns their client ends.
 *
 * To go through all descriptors of a host takes most of the time. So the processes that live in the namespace of the
 * sockets come first, and it ends with the last inode found.
 */

#define MAX_ENDS   (1u << 17)

typedef struct {
    uint32_t local, remote;   /* network byte order, ports too; those of IPv6 as in struct ebpfMonPeer */
    uint32_t local6[4], remote6[4];
    uint16_t localPort, remotePort;
    uid_t    uid;
    unsigned long inode;
    pid_t    pid;
} End;

typedef struct {
    End     *end;
    size_t   count, room;
    uint8_t  listening[65536 / 8];
} Ends;

static int addEnd(Ends *ends, const End *end)
{
    if (ends->count >= MAX_ENDS || ebpfMonArrayGrow(&ends->end, &ends->room, ends->count + 1, 256, sizeof(*ends->end)))
        return -1;
    ends->end[ends->count++] = *end;
    return 0;
}

/* Notes an established connection, and the port of a listening socket. Nonzero: no memory. */
static int addConnRow(void *arg, const ebpfMonTcpRow *row)
{
    Ends *ends = arg;
    unsigned port = ntohs(row->localPort);
    End end = { .local = row->local, .remote = row->remote, .localPort = row->localPort,
                .remotePort = row->remotePort, .uid = row->uid, .inode = row->inode };

    if (row->state == ebpfMonTcpListen)
        ends->listening[port / 8] |= (uint8_t)(1u << port % 8);
    if (!row->v4) {
        memcpy(end.local6, row->local6, sizeof(end.local6));
        memcpy(end.remote6, row->remote6, sizeof(end.remote6));
        end.local = ebpfMonShortAddress(end.local6);
        end.remote = ebpfMonShortAddress(end.remote6);
    }
    return row->state == ebpfMonTcpEstablished && (row->v4 || row->v6) ? addEnd(ends, &end) : 0;
}

static int byInode(const void *a, const void *b)
{
    unsigned long x = ((const End *)a)->inode, y = ((const End *)b)->inode;

    return x < y ? -1 : x > y;
}

static int keepClients(const Ends *ends, Ends *clients)
{
    for (size_t i = 0; i < ends->count; i++) {
        unsigned port = ntohs(ends->end[i].localPort);

        if (!(ends->listening[port / 8] >> port % 8 & 1) && addEnd(clients, &ends->end[i]))
            return -1;
    }
    return 0;
}

typedef struct {
    pid_t  pid;
    Ends  *clients;
    size_t found;
} Owner;

/* Notes the process as the owner of a socket that has none yet. */
static void findOwned(void *arg, unsigned file, unsigned long inode)
{
    Owner *owner = arg;
    End key = { .inode = inode };
    End *end = bsearch(&key, owner->clients->end, owner->clients->count, sizeof(key), byInode);

    if (end && !end->pid) {
        end->pid = owner->pid;
        owner->found++;
    }
}

/* Goes through the files of the processes that live in this network namespace, or, with "isOutside", of all others,
 * until the owners of all client ends are found. Returns the number of those that are not. */
static size_t findOwners(Ends *clients, size_t left, const pid_t *pids, int count, uint32_t netns, int isOutside)
{
    for (int i = 0; i < count && left; i++) {
        Owner owner = { .pid = pids[i], .clients = clients };

        if ((ebpfMonProcNetns(owner.pid) != netns) != isOutside)
            continue;
        ebpfMonTcpOwned(owner.pid, findOwned, &owner);
        left -= owner.found;
    }
    return left;
}

/* Finds the owners of all client ends in the namespace of process "pid", and copies them out; returns their number, -1:
 * no memory. */
static int copyOut(pid_t pid, Ends *clients, ebpfMonProcConn **conns)
{
    pid_t *pids = NULL;
    int nPids = clients->count ? ebpfMonProcList(&pids) : 0;
    uint32_t netns = ebpfMonProcNetns(pid ? pid : getpid());

    *conns = calloc(clients->count ? clients->count : 1, sizeof(**conns));
    if (nPids < 0 || !*conns) {
        free(pids);
        free(*conns);
        *conns = NULL;
        return -1;
    }
    if (clients->count)
        qsort(clients->end, clients->count, sizeof(*clients->end), byInode);
    findOwners(clients, findOwners(clients, clients->count, pids, nPids, netns, 0), pids, nPids, netns, 1);
    free(pids);
    for (size_t i = 0; i < clients->count; i++) {
        const End *end = &clients->end[i];
        ebpfMonProcConn *conn = &(*conns)[i];

        *conn = (ebpfMonProcConn){ .addr = end->local, .saddr = end->remote, .port = end->localPort,
                                   .sport = end->remotePort, .pid = end->pid, .uid = end->uid };
        memcpy(conn->addr6, end->local6, sizeof(conn->addr6));
        memcpy(conn->saddr6, end->remote6, sizeof(conn->saddr6));
        if (end->pid && ebpfMonProcReadText(end->pid, "comm", conn->comm, sizeof(conn->comm)) > 0)
            conn->comm[strcspn(conn->comm, "\n")] = 0;
    }
    return (int)clients->count;
}

int ebpfMonProcReadConns(pid_t pid, ebpfMonProcConn **conns)
{
    Ends ends = { .end = NULL }, clients = { .end = NULL };
    int result = -1;

    *conns = NULL;
    if (!ebpfMonTcpRows(pid, EBPFMON_TCP_STATE(ebpfMonTcpListen) | EBPFMON_TCP_STATE(ebpfMonTcpEstablished), addConnRow,
                        &ends) && !keepClients(&ends, &clients))
        result = copyOut(pid, &clients, conns);
    free(ends.end);
    free(clients.end);
    return result;
}

int ebpfMonProcListening(pid_t pid, uint8_t ports[EBPFMON_PORTS_BYTES])
{
    Ends ends = { 0 };
    int status = ebpfMonTcpRows(pid, EBPFMON_TCP_STATE(ebpfMonTcpListen), addConnRow, &ends);

    memcpy(ports, ends.listening, EBPFMON_PORTS_BYTES);
    free(ends.end);
    return status ? -1 : 0;
}

int ebpfMonProcUser(uid_t uid, char *buf, size_t size)
{
    char text[2048];
    struct passwd entry, *user = NULL;

    if (getpwuid_r(uid, &entry, text, sizeof(text), &user) || !user) {
        snprintf(buf, size, "%u", (unsigned)uid);
        return -1;
    }
    snprintf(buf, size, "%s", user->pw_name);
    return 0;
}

/* --- ends --- */

#define THREADS_MAX 4096 /* looked at; a process with more of them is taken for a living one */
#define EXITING     0x4  /* PF_EXITING of the kernel's linux/sched.h */
#define KILLED      0x100 /* SIGKILL in a mask of proc(5) */

/* Reads a file of a thread. Nonzero: the thread is gone, not only that we have no file or no memory left. */
static int isThreadGone(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
    errno = 0;
    return ebpfMonProcReadTask(pid, tid, name, buf, size) <= 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM;
}

/* Nonzero: this thread runs no code of its program any more. exit_group(2), SIGKILL and a core dump send SIGKILL to
 * each thread of a process (zap_other_threads, complete_signal, zap_process of the kernel); one that has taken it is
 * exiting. */
static int isThreadEnding(pid_t pid, pid_t tid)
{
    char buf[4096];
    const char *p;

    if (isThreadGone(pid, tid, "stat", buf, sizeof(buf)))
        return 1;
    p = ebpfMonProcFindField(buf, 9);
    if (p && strtoul(p, NULL, 10) & EXITING)
        return 1;
    if (isThreadGone(pid, tid, "status", buf, sizeof(buf)))
        return 1;
    p = strstr(buf, "\nSigPnd:");
    if (p && strtoull(p + 8, NULL, 16) & KILLED)
        return 1;
    /* the thread that writes it has taken its signal, and is not exiting yet */
    return ebpfMonProcFindNumber(buf, "\nCoreDumping:", 0) != 0;
}

int ebpfMonProcIsEnding(pid_t pid, uint64_t start)
{
    int *tids, ending, n;

    if (!ebpfMonProcLives(pid, start))
        return 1;
    n = ebpfMonProcListNumbers(pid, "task", THREADS_MAX + 1, &tids);
    ending = n >= 0 ? n <= THREADS_MAX : !ebpfMonProcLives(pid, start); /* or we have no file left */
    for (int i = 0; ending && i < n; i++)
        ending = isThreadEnding(pid, tids[i]);
    free(tids);
    return ending;
}
