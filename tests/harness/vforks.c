/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into a program: at SIGUSR1 a thread waits for a child in vfork(), in state D of proc(5), until the file
 * VFORK_ENDS exists. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void onSignal(int number)
{
    const char *ends = getenv("VFORK_ENDS");
    pid_t child = vfork();

    (void)number;
    if (child == 0) {
        while (access(ends, F_OK))
            usleep(10000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

__attribute__((constructor)) static void begin(void)
{
    signal(SIGUSR1, onSignal);
}
