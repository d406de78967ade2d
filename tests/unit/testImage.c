/* SPDX-License-Identifier: BSD-3-Clause */
/* code/image.h and host/procInfo.h with a real softIoc, which the test starts and stops. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>
#include "code/image.h"
#include "host/procInfo.h"
#include "softIoc.h"

#define IOC_TESTS 32

/* A variable in the environment of a child, which runs this program with other arguments: the child waits and does
 * nothing. */
#define WAITER "EBPFMON_TEST_WAITER"

static char  folder[64] = "/tmp/ebpfMonXXXXXX", database[80];

static void writeDatabase(void)
{
    FILE *file = fopen(database, "w");

    if (!file || fputs("record(ai, \"x\") {}\n", file) < 0 || fclose(file))
        testAbort("%s cannot be written", database);
}

static ssize_t readTarget(uint64_t address, void *buf, size_t size)
{
    struct iovec local = { buf, size }, remote = { (void *)(uintptr_t)address, size };

    return process_vm_readv(ioc, &local, 1, &remote, 1, 0);
}

/* Waits until the IOC runs, at most 60 s. */
static int waitForIoc(ebpfMonImageCache *cache, ebpfMonImage *image)
{
    for (int i = 0; i < 1200; i++, epicsThreadSleep(0.05)) {
        int up = 0;

        if (ebpfMonImageRead(cache, ioc, image) == 0
            && readTarget(image->interruptAccept, &up, sizeof(up)) == sizeof(up) && up)
            return 0;
    }
    return -1;
}

/* The files that take lock sets. What cannot be read now is told from what is not there. */
static void testCallers(ebpfMonImageCache *cache)
{
    static ebpfMonImageCallers callers, again;
    struct rlimit files, few;
    int rc, err;

    testOk(ebpfMonImageReadCallers(cache, ioc, &callers) == 0 && callers.complete && callers.count > 1,
           "%u files take lock sets", callers.count);
    getrlimit(RLIMIT_NOFILE, &files);
    few = files;
    few.rlim_cur = 1;
    setrlimit(RLIMIT_NOFILE, &few);
    rc = ebpfMonImageReadCallers(cache, ioc, &again);
    err = errno;
    setrlimit(RLIMIT_NOFILE, &files);
    testOk(rc == -1 && err == EMFILE && !again.complete, "not known while no file can be opened: %s", strerror(err));
    testOk(ebpfMonImageReadCallers(cache, ioc, &again) == 0 && ebpfMonImageCallersAreSame(&callers, &again),
           "… and then the same");
}

static void countIocs(void *arg, const ebpfMonBinary *binary)
{
    *(unsigned *)arg += binary->isIoc != 0;
}

static void testIoc(ebpfMonImageCache *cache)
{
    ebpfMonImage image, again;
    char name[EBPFMON_IOCNAME_SIZE], small[6], release[16] = "";
    unsigned n = 0;
    void *base = NULL;

    testOk(waitForIoc(cache, &image) == 0, "the softIoc is an IOC, and its iocInit is done");
    if (!image.core)
        testAbort("nothing to look at");
    testOk(image.core->isIoc && image.core->buildId[0], "core %s, build-id %s", image.core->path,
        image.core->buildId);
    testOk(!access(image.openPath, R_OK), "its file can be opened by %s", image.openPath);
    for (int fn = 0; fn < ebpfMonFnServe; fn++) { /* softIoc has no pvxs */
        int isInCom = fn == ebpfMonFnRingPop || fn == ebpfMonFnAddClient;
        const ebpfMonSite *site = &(isInCom && image.com ? image.com : image.core)->site[fn];

        testOk(site->cls == ebpfMonSiteFast, "%s: %s at +%u, file offset 0x%llx", ebpfMonFnNames[fn],
            site->insn, site->skip, (unsigned long long)site->offset);
    }
    testOk(image.core->site[ebpfMonFnPut].canReturn, "dbPut can have a return probe");
    testOk(readTarget(image.pdbbase, &base, sizeof(base)) == sizeof(base) && base, "pdbbase is not NULL");
    testOk(image.asActive != 0, "asActive is found in another library");
    testOk(readTarget(image.releaseVersion, release, sizeof(release) - 1) > 0
        && !strncmp(release, "EPICS R", 7) && !image.releaseIsPointer, "release \"%s\"", release);
    testOk(ebpfMonImageRead(cache, ioc, &again) == 0 && again.core == image.core, "the same from the cache");
    testCallers(cache);
    ebpfMonImageEach(cache, countIocs, &n);
    testOk(n == 1, "%u program of an IOC is in the cache", n);

    testOk(ebpfMonProcIocName(ioc, name, sizeof(name)) == 0 && !strcmp(name, "vac\\x0auum"), "name %s", name);
    testOk(ebpfMonProcIocName(ioc, small, sizeof(small)) == 0 && !strcmp(small, "va..."), "a name that is cut: %s",
           small);
    testOk(ebpfMonProcSeccomp(ioc) == 0, "no seccomp filter");
    testOk(ebpfMonProcCommand(ioc, name, sizeof(name)) == 0 && !strcmp(name, "softIoc"), "command %s", name);
}

/* The name of a process in this folder with these arguments, and with these variables. */
static void testNameAmong(const char *expected, char *const args[], const char *ioc, const char *instance)
{
    char name[EBPFMON_IOCNAME_SIZE] = "";
    int in[2], ready[2];
    pid_t pid;

    if (pipe(in) || pipe(ready))
        testAbort("no pipe");
    pid = fork();
    if (pid == 0) {
        char *const environment[] = { (char *)instance, (char *)ioc, WAITER "=1", NULL };

        dup2(in[0], 0);
        dup2(ready[1], 1);
        close(in[0]);
        close(in[1]);
        close(ready[0]);
        close(ready[1]);
        if (chdir(folder))
            _exit(126);
        execve("/proc/self/exe", args, environment);
        _exit(127);
    }
    close(in[0]);
    close(ready[1]);
    if (read(ready[0], name, 1) == 1)
        ebpfMonProcIocName(pid, name, sizeof(name));
    testOk(!strcmp(name, expected), "named %s", name);
    close(ready[0]);
    close(in[1]);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void testName(const char *expected, char *const args[])
{
    testNameAmong(expected, args, "IOC=", "IOC_NAME=");
}

static void testNames(void)
{
    char *const script[] = { "/epics/ioc/bin/ioc", "/epics/runtime/st.cmd", NULL };

    testDiag("IOC is the name; in a container of epics-containers it is a path, and IOC_NAME is the name");
    testNameAmong("vac1", script, "IOC=vac1", "IOC_NAME=other");
    testNameAmong("bl01t-ea-01", script, "IOC=/epics/ioc", "IOC_NAME=bl01t-ea-01");
    testNameAmong("bl01t-ea-02", script, "IOC=", "IOC_NAME=bl01t-ea-02");
    testNameAmong("/epics/ioc", script, "IOC=/epics/ioc", "IOC_NAME=");
    testName(folder + 5, (char *[]){ "../../bin/linux-x86_64/foo", "st.cmd", NULL });
    testName("iocVac", (char *[]){ "foo", "/ioc/iocBoot/x/../iocVac/./st.cmd", NULL });
    testName("softIoc", (char *[]){ "/opt/bin/softIoc", "-d", "x.db", NULL });
    testName("epicscorelibs.ioc",
        (char *[]){ "/usr/bin/python3.11", "-u", "-W", "ignore", "-m", "epicscorelibs.ioc", "-d", NULL });
    testName("ioc.py", (char *[]){ "python3", "/a/b/ioc.py", NULL });
    testName("python3", (char *[]){ "python3", "-c", "import x", "y", NULL });
    testName("my.jar", (char *[]){ "java", "-Xmx1g", "-cp", "a:b", "-jar", "/c/my.jar", NULL });
}

static void testOthers(ebpfMonImageCache *cache)
{
    ebpfMonImage image;
    char name[EBPFMON_IOCNAME_SIZE];
    pid_t *pids, gone = fork();
    int n = ebpfMonProcList(&pids), self = 0;

    if (gone == 0)
        _exit(0);
    waitpid(gone, NULL, 0);
    /* not this process: it is linked with Base's libraries, so it looks like an IOC */
    testOk(ebpfMonImageRead(cache, getppid(), &image) == 1, "the parent process of this test is no IOC");
    errno = 0;
    testOk(ebpfMonImageRead(cache, gone, &image) == -1 && errno == ESRCH, "a process that is gone");
    testOk(ebpfMonProcIocName(gone, name, sizeof(name)) == -1 && ebpfMonProcStart(gone) == 0
        && ebpfMonProcSeccomp(gone) == -1, "nothing is said about a process that has ended");
    for (int i = 0; i < n; i++)
        self += pids[i] == getpid();
    testOk(self == 1 && ebpfMonProcStart(getpid()) > 0, "this process is among %d processes", n);
    testOk(ebpfMonProcSeccomp(getpid()) >= 0, "seccomp mode");
    free(pids);
}

/* The process that has the client end of a connection; 0: none, or what else is said of it is wrong. */
static pid_t findClient(const struct sockaddr_in *client, const struct sockaddr_in *server)
{
    ebpfMonProcConn *conns;
    int n = ebpfMonProcReadConns(0, &conns);
    pid_t found = 0;

    for (int i = 0; i < n; i++)
        if (conns[i].addr == client->sin_addr.s_addr && conns[i].port == client->sin_port && conns[i].uid == getuid()
            && conns[i].sport == server->sin_port && conns[i].saddr == server->sin_addr.s_addr && conns[i].comm[0])
            found = conns[i].pid;
    free(conns);
    return found;
}

/* A child in a network namespace of its own, with all sockets of this process. 0: we may not make one. */
static pid_t startElsewhere(void)
{
    int pair[2];
    char letter = 0;
    pid_t pid = pipe(pair) ? -1 : fork();

    if (pid < 0)
        testAbort("no child");
    if (pid == 0) {
        letter = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 'y' : 'n';
        if (write(pair[1], &letter, 1) == 1)
            pause();
        _exit(0);
    }
    if (read(pair[0], &letter, 1) == 1 && letter == 'y')
        return pid;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}

/* A connection of this process with itself; then its client end is a process' in another network namespace. */
static void testConns(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, mine;
    socklen_t size = sizeof(at), sizeMine = sizeof(mine);
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), accepted;
    pid_t child;

    if (bind(server, (struct sockaddr *)&at, sizeof(at)) || listen(server, 1)
        || getsockname(server, (struct sockaddr *)&at, &size)
        || connect(client, (struct sockaddr *)&at, sizeof(at))
        || getsockname(client, (struct sockaddr *)&mine, &sizeMine))
        testAbort("no TCP on the loopback");
    accepted = accept(server, NULL, NULL);
    testOk(findClient(&mine, &at) == getpid(), "the client of a local connection is this process");
    child = startElsewhere();
    close(client);
    if (child) {
        testOk(findClient(&mine, &at) == child, "… or a process in another network namespace");
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    } else {
        testSkip(1, "no network namespace");
    }
    close(accepted);
    close(server);
}

/* This process may open one file more: the folder of threads, and none of the files in it. */
static void testOneFileLeft(void)
{
    uint64_t start = ebpfMonProcStart(getpid());
    int next = dup(1), isEnding;
    struct rlimit usual, few;

    getrlimit(RLIMIT_NOFILE, &usual);
    few = usual;
    few.rlim_cur = (rlim_t)next + 1;
    close(next);
    setrlimit(RLIMIT_NOFILE, &few);
    isEnding = ebpfMonProcIsEnding(getpid(), start);
    setrlimit(RLIMIT_NOFILE, &usual);
    testOk(!isEnding, "a process that lives is not about to end, although its threads cannot be read");
}

MAIN(testImage)
{
    if (getenv(WAITER)) /* the new program has its arguments: execve closes files before it sets them */
        return write(1, "", 1) == 1 ? (int)read(0, folder, 1) : 1;

    ebpfMonImageCache *cache = ebpfMonImageCacheNew();

    testPlan(IOC_TESTS + 19);
    if (!cache || !mkdtemp(folder))
        testAbort("no memory, or no folder in /tmp");
    snprintf(database, sizeof(database), "%s/x.db", folder);
    writeDatabase();
    if (startIoc(database, "vac\nuum") == 0) {
        testIoc(cache);
        stopIoc();
    } else {
        testSkip(IOC_TESTS, "no softIoc: EPICS_BASE and EPICS_HOST_ARCH name none");
    }
    testNames();
    testOthers(cache);
    testConns();
    testOneFileLeft();
    ebpfMonImageCacheFree(cache);
    unlink(database);
    rmdir(folder);
    return testDone();
}
