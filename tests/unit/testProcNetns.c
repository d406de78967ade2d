/* SPDX-License-Identifier: BSD-3-Clause */
/* host/procNetns.h: containers are found by the text of their cgroup; networks are tried with
 * processes of this program. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/procNetns.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static char asked[200]; /* the folders that were judged */

/* A user has the cgroups below user@UID.service. */
static int isRoots(const char *controllers, const char *folder)
{
    size_t used = strlen(asked);

    snprintf(asked + used, sizeof(asked) - used, "[%s:%s]", controllers, folder);
    return !strstr(folder, "user@");
}

static void container(const char *what, const char *cgroup, const char *name)
{
    char buf[40] = "before";
    int in;

    asked[0] = 0;
    in = ebpfMonContainerParse(cgroup, isRoots, buf, sizeof(buf));

    testOk(!strcmp(buf, name) && in == !!*name, "%s: \"%s\"", what, buf);
}

static void testContainer(void)
{
    char small[8];

    testDiag("containers");
    container("docker, systemd", "0::/system.slice/docker-" ID ".scope\n", "0123456789ab");
    container("docker, cgroupfs", "12:pids:/docker/" ID "\n11:cpu:/docker/" ID "\n0::/system.slice/x.service\n",
              "0123456789ab");
    container("podman", "0::/machine.slice/libpod-" ID ".scope/container\n", "0123456789ab");
    container("podman, as a user", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n",
              "");
    container("a name that a user has chosen",
              "0::/user.slice/user-1000.slice/user@1000.service/app.slice/machine-controlroom.scope\n", "");
    container("… and a container in it",
              "0::/user.slice/user@1000.service/machine-controlroom.scope/docker/" ID "\n", "");
    container("podman's own conmon", "0::/machine.slice/libpod-conmon-" ID ".scope\n", "");
    container("kubernetes, containerd", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
              "cri-containerd-" ID ".scope\n", "0123456789ab");
    container("kubernetes, containerd in a service", "0::/system.slice/containerd.service/"
              "kubepods-besteffort-pod1.slice:cri-containerd:" ID, "0123456789ab");
    container("kubernetes, CRI-O", "0::/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope\n", "0123456789ab");
    container("kubernetes, cgroupfs", "0::/kubepods/besteffort/pod11111111-2222/" ID "\n", "0123456789ab");
    container("LXC", "0::/lxc.payload.beamline-7/system.slice/ioc.service\n", "beamline-7");
    container("LXC's own monitor", "0::/lxc.monitor.beamline-7\n", "");
    container("LXC of old", "4:memory:/lxc/web1/init.scope\n", "web1");
    container("a machine", "0::/machine.slice/machine-vac\\x2dioc.scope/payload\n", "vac-ioc");
    container("the outermost", "0::/lxc.payload.host1/docker/" OTHER "/docker/" ID "\n", "host1");
    testOk(!strcmp(asked, "[:]"), "whoever made it could write to the root: %s", asked);
    container("a name that a container has chosen", "0::/system.slice/docker-" ID ".scope/machine-controlroom.scope\n",
              "0123456789ab");
    testOk(!strcmp(asked, "[:/system.slice]"), "whoever made it could write to its folder: %s", asked);
    container("a line of a user and one of root",
              "2:name=systemd:/user@7.service/machine-a.scope\n1:cpu,cpuacct:/docker/" ID "\n", "0123456789ab");
    testOk(!strcmp(asked, "[name=systemd:/user@7.service][cpu,cpuacct:/docker]"), "both are judged: %s", asked);
    container("the first line that names one", "3:cpu:/\n2:name=x:/docker/" ID "\n1:y:/docker/" OTHER "\n",
              "0123456789ab");
    container("none", "0::/user.slice/user-0.slice/session-1.scope\n", "");
    container("the root", "0::/\n", "");
    container("nothing", "", "");
    container("no path", "0::\n:\n\n", "");
    container("an id that is too short", "0::/docker/0123456789abcdef\n", "");
    container("too long", "0::/docker/" ID "0\n", "");
    container("no id", "0::/system.slice/docker-" "zz23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
              ".scope\n", "");
    container("a name with an escape sequence", "0::/lxc/a\033[2J\n", "");
    container("… behind a good one", "0::/docker/" ID "/lxc/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\001\n",
              "0123456789ab");
    container("a coded zero", "0::/lxc/a\\x00b\n", "");
    container("a name that is cut", "0::/lxc/abcdefghijabcdefghijabcdefghijabcdefghijabcdefghij\n",
              "abcdefghijabcdefghijabcdefghijabcdefghi");
    testOk(ebpfMonContainerParse("0::/docker/" ID, isRoots, small, sizeof(small)) && !strcmp(small, "0123456"),
           "a text that does not fit is cut");
    testOk1(ebpfMonProcContainer(0x7fffffff, small, sizeof(small)) == 0 && !small[0]);
}

/* Starts a child without the sockets of this program. The child calls "what" and then waits. Returns when "what" is
 * done. */
static pid_t child(int (*what)(void))
{
    int ready[2];
    char c = 0;

    if (pipe(ready))
        testAbort("no pipe");

    pid_t pid = fork();

    if (pid == 0) {
        for (int fd = 3; fd < 64; fd++)
            if (fd != ready[1])
                close(fd);
        c = what() == 0;
        if (write(ready[1], &c, 1) == 1)
            pause();
        _exit(0);
    }
    close(ready[1]);
    if (read(ready[0], &c, 1) == 1 && !c)
        testDiag("the child process failed");
    close(ready[0]);
    return pid;
}

static void endChild(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int leave(void)
{
    return unshare(CLONE_NEWNET);
}

/* Makes a folder of cgroups, which gets an owner, and in it one that is named like a container, with a process. Returns
 * the name of its container; NULL: that cannot be made here. */
static const char *nameBelow(pid_t pid, uid_t owner)
{
    static char name[40];
    char folder[80], scope[200], procs[220];
    const char *top = access("/sys/fs/cgroup/pids", F_OK) ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids";
    FILE *file;
    int isIn;

    snprintf(folder, sizeof(folder), "%s/testProcNetns-%d", top, (int)pid);
    snprintf(scope, sizeof(scope), "%s/docker-" ID ".scope", folder);
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", scope);
    isIn = mkdir(folder, 0755) == 0 && mkdir(scope, 0755) == 0 && chown(folder, owner, 0) == 0;
    file = isIn ? fopen(procs, "we") : NULL;
    isIn = file && fprintf(file, "%d", (int)pid) > 0;
    isIn &= file && fclose(file) == 0;
    ebpfMonProcContainer(pid, name, sizeof(name));
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", top);
    file = fopen(procs, "we");
    if (file && fprintf(file, "%d", (int)pid) > 0)
        testDiag("the process was in \"%s\"", name);
    if (file)
        fclose(file);
    rmdir(scope);
    rmdir(folder);
    return isIn ? name : NULL;
}

static int doNothing(void)
{
    return 0;
}

static void testCgroups(void)
{
    pid_t pid = child(doNothing);
    const char *name = geteuid() ? NULL : nameBelow(pid, 0);

    testDiag("who may choose the name of a container");
    if (!name) {
        testSkip(2, "no cgroup can be made");
    } else {
        testOk(!strcmp(name, "0123456789ab"), "root may");
        name = nameBelow(pid, 65534);
        testOk(name && !name[0], "a user may not");
    }
    endChild(pid);
}

static void testNetns(void)
{
    pid_t away = child(leave), pids[] = { getpid(), away, getppid(), away, 0x7fffffff };
    ebpfMonNetns *list = NULL;
    uint32_t own = ebpfMonProcNetns(getpid());

    testDiag("network namespaces");
    testOk1(own != 0);
    if (ebpfMonProcNetns(away) == own)
        testSkip(2, "a network namespace of our own needs root");
    else {
        testOk1(ebpfMonProcNetnsList(pids, 5, &list) == 2);
        testOk1(list[0].netns == own && list[0].pid == getpid() && list[1].pid == away
                && list[1].netns == ebpfMonProcNetns(away));
        free(list);
    }
    endChild(away);
    testOk1(ebpfMonProcNetns(away) == 0);
    testOk1(ebpfMonProcNetnsList(&away, 1, &list) == 0 && list);
    free(list);
    testOk1(ebpfMonProcNetnsList(NULL, 0, &list) == 0);
    free(list);
}

MAIN(testProcNetns)
{
    testPlan(43);
    testContainer();
    testCgroups();
    testNetns();
    return testDone();
}
