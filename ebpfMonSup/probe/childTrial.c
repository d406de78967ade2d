/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/childTrial.h"

#define WAIT_MS 5000

static void runChild(const ebpfMonChildTrial *trial, int socket)
{
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(socket, &byte, 1) != 1)
        _exit(1);
    byte = (char)trial->run();
    _exit(write(socket, &byte, 1) == 1 ? 0 : 1);
}

/* Sets the probe and lets the child continue. Returns its answer, or -1. */
static int probeChild(const ebpfMonChildTrial *trial, pid_t child, int socket)
{
    struct pollfd answer = { .fd = socket, .events = POLLIN };
    char byte = 0;
    int isGiven;

    if (trial->set(trial->arg, child))
        return -1;
    isGiven = send(socket, &byte, 1, MSG_NOSIGNAL) == 1 && poll(&answer, 1, WAIT_MS) == 1 &&
              read(socket, &byte, 1) == 1;
    trial->unset(trial->arg);
    return isGiven ? byte : -1;
}

int ebpfMonChildTry(const ebpfMonChildTrial *trial)
{
    int ends[2], answer = -1;
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    child = fork();
    if (child == 0) {
        close(ends[0]);
        runChild(trial, ends[1]);
    }
    close(ends[1]);
    if (child > 0) {
        answer = probeChild(trial, child, ends[0]);
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(ends[0]);
    return answer;
}
