/* SPDX-License-Identifier: BSD-3-Clause */
/* A softIoc of this Base as a child of the test. It uses only the loopback interface. */
#ifndef EBPFMON_SOFTIOC_H
#define EBPFMON_SOFTIOC_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epicsUnitTest.h>

static pid_t ioc;
static int   iocStdin = -1; /* its shell */

/* Starts a softIoc. "database": the file to load; NULL: none yet. "name": value of its variable IOC; NULL: none. 0,
 * or -1 if there is no softIoc. */
static inline int startIoc(const char *database, const char *name)
{
    const char *base = getenv("EPICS_BASE"), *arch = getenv("EPICS_HOST_ARCH");
    char path[512], port[16];
    int in[2], running[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    snprintf(path, sizeof(path), "%s/bin/%s/softIoc", base ? base : "", arch ? arch : "linux-x86_64");
    if (!base || access(path, X_OK) || pipe2(in, O_CLOEXEC) || pipe2(running, O_CLOEXEC))
        return -1;
    snprintf(port, sizeof(port), "%d", 20000 + (int)getpid() % 20000);
    ioc = fork();
    if (ioc == 0) {
        setenv("EPICS_CA_SERVER_PORT", port, 1);
        setenv("EPICS_CAS_INTF_ADDR_LIST", "127.0.0.1", 1);
        setenv("EPICS_CAS_BEACON_ADDR_LIST", "127.0.0.1", 1);
        setenv("EPICS_CA_ADDR_LIST", "127.0.0.1", 1);
        setenv("EPICS_CA_AUTO_ADDR_LIST", "NO", 1);
        setenv("EPICS_IOCSH_HISTFILE", "", 1); /* else it would leave a core file here */
        if (name)
            setenv("IOC", name, 1);
        dup2(in[0], 0);
        dup2(null, 1);
        dup2(null, 2);
        execl(path, "softIoc", database ? "-d" : (char *)NULL, database, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(running[1]);
    close(null);
    /* exec closes this pipe. Until then the child is this program, which has a pdbbase, too. */
    if (read(running[0], path, 1))
        testAbort("no exec");
    close(running[0]);
    iocStdin = in[1];
    return ioc > 0 ? 0 : -1;
}

static inline void stopIoc(void)
{
    close(iocStdin);
    kill(ioc, SIGKILL);
    waitpid(ioc, NULL, 0);
}

#endif
