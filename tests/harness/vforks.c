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
        for (int i = 0; i < 6000 && access(ends, F_OK); i++) /* a minute at most, if the test has ended */
            usleep(10000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

__attribute__((constructor)) static void begin(void)
{
    signal(SIGUSR1, onSignal);
}
