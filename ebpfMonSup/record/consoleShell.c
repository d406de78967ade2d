/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The iocsh command ebpfMonConsole: a console at a UNIX socket, for a monitor that runs as a service and has no
 * standard input. A client types commands of the IOC shell, and gets what they print. Messages of the error log do not
 * go to the client.
 *
 * A user of the shell can do everything. So only root and the user of this process may connect; the kernel tells who
 * the client is.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <epicsAtomic.h>
#include <epicsStdio.h>
#include <epicsThread.h>
#include <errlog.h>
#include <iocsh.h>

#include "record/shellCommand.h"

#define CLIENTS_MAX  4
#define LINE_SIZE    1024
#define SEND_SECONDS 5 /* if a client does not read for so long, the connection is closed */
#define PROMPT       "ebpfMon> "

typedef struct {
    int fd;
    int clients; /* atomic */
} console;

typedef struct {
    console *of;
    int fd;
} connection;

static int isAllowed(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

static int isEnd(const char *line)
{
    line += strspn(line, " \t");
    return strcmp(line, "exit") == 0 || strcmp(line, "quit") == 0;
}

/* Runs the commands of a client until it closes the connection. "exit" ends the connection, not this IOC. */
static void runCommands(FILE *in, FILE *out)
{
    char line[LINE_SIZE];

    while (!ferror(out) && (fputs(PROMPT, out), fflush(out), fgets(line, sizeof(line), in))) {
        size_t length = strcspn(line, "\n");

        if (!line[length] && !feof(in)) { /* else the rest of the line would be run as another command */
            fprintf(out, "a line may have %d characters; the connection is closed\n", LINE_SIZE - 2);
            break;
        }
        line[length] = 0;
        if (isEnd(line))
            break;
        if (iocshCmd(line))
            fprintf(out, "the command failed: the log of the IOC may say why\n");
    }
    fflush(out);
}

static void serveClient(void *arg)
{
    connection *c = arg;
    int copy = dup(c->fd);
    FILE *in = fdopen(c->fd, "r"), *out = copy >= 0 ? fdopen(copy, "w") : NULL;

    if (in && out) {
        epicsSetThreadStdout(out);
        runCommands(in, out);
        epicsSetThreadStdout(NULL);
    }
    if (out)
        fclose(out);
    if (in)
        fclose(in);
    epicsAtomicDecrIntT(&c->of->clients);
    free(c);
}

static void beginClient(console *of, int fd)
{
    struct timeval most = { .tv_sec = SEND_SECONDS };
    connection *c = isAllowed(fd) && epicsAtomicGetIntT(&of->clients) < CLIENTS_MAX ? malloc(sizeof(*c)) : NULL;

    if (c) {
        *c = (connection){ of, fd };
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
        epicsAtomicIncrIntT(&of->clients);
        if (epicsThreadCreate("ebpfMonConsole", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackBig),
                              serveClient, c))
            return;
        epicsAtomicDecrIntT(&of->clients);
        free(c);
    }
    close(fd);
}

static void acceptClients(void *arg)
{
    console *of = arg;

    for (;;) {
        int fd = accept4(of->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0)
            beginClient(of, fd);
        else if (errno != EINTR && errno != ECONNABORTED)
            epicsThreadSleep(1); /* the process has too many open files; no event tells when one is closed */
    }
}

/* Opens a socket to which only its owner may connect. A socket that an earlier process has left there is removed.
 * -1: errno says what is wrong. */
static int openSocket(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct stat st;
    int fd, err;

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && chmod(path, 0600) == 0 &&
        listen(fd, CLIENTS_MAX) == 0)
        return fd;
    err = errno;
    if (fd >= 0)
        close(fd);
    errno = err;
    return -1;
}

static void openConsole(const iocshArgBuf *args)
{
    const char *path = ebpfMonShellGetText(args[0].sval, "");
    console *of = path[0] == '/' ? calloc(1, sizeof(*of)) : NULL; /* never freed: its thread runs for ever */

    if (!of) {
        ebpfMonShellFail("ebpfMonConsole: give the path of the socket, beginning with /\n");
        return;
    }
    of->fd = openSocket(path);
    if (of->fd >= 0 && epicsThreadCreate("ebpfMonConsoles", epicsThreadPriorityLow,
                                         epicsThreadGetStackSize(epicsThreadStackSmall), acceptClients, of))
        return;
    errlogSevPrintf(errlogMajor, "ebpfMonConsole: no console at %s: %s\n", path, strerror(errno));
    if (of->fd >= 0)
        close(of->fd);
    free(of);
    ebpfMonShellSetStatus(-1);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonConsole", openConsole, {{"socket", iocshArgStringPath}},
     "Opens a console for root and for the user of this IOC, at a UNIX socket. Connect to it by\n"
     "ebpfMon --console. \"exit\" there ends the connection, not the IOC. At most four at a time.\n"
     "Example: ebpfMonConsole \"/run/ebpfmon/console\"\n"}
};

void ebpfMonConsoleShellRegister(void)
{
    ebpfMonShellRegisterCommands(commands, sizeof(commands) / sizeof(commands[0]));
}
