/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <epicsThread.h>

#include "probe/libbpfText.h"

/* The print function is one per process: all callers of libbpf share it, and it has no argument. It is set once, so
 * that no thread sets it while another thread prints. The texts belong to the thread that loads. */
static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;
static __thread char warning[160], verdict[120];

/* The verifier's log has a line for each step. Its verdict is the last line before the statistics. */
static void keepVerdict(const char *log)
{
    const char *end = strstr(log, "\nprocessed "), *begin = end;

    if (!end)
        return;
    while (begin > log && begin[-1] != '\n')
        begin--;
    snprintf(verdict, sizeof(verdict), "%.*s", (int)(end - begin), begin);
}

/* libbpf explains a failed load in many lines. The first one names the program; another one contains the verifier's
 * log. */
static int keepText(enum libbpf_print_level level, const char *fmt, va_list ap)
{
    va_list again;
    char *log = NULL;

    if (level != LIBBPF_WARN)
        return 0;
    va_copy(again, ap);
    if (!warning[0]) {
        vsnprintf(warning, sizeof(warning), fmt, ap);
        warning[strcspn(warning, "\n")] = 0;
    }
    if (!verdict[0] && vasprintf(&log, fmt, again) >= 0) {
        keepVerdict(log);
        free(log);
    }
    va_end(again);
    return 0;
}

static void setPrint(void *arg)
{
    libbpf_set_print(keepText);
}

void ebpfMonLibbpfTextBegin(void)
{
    epicsThreadOnce(&once, setPrint, NULL);
    warning[0] = verdict[0] = 0;
}

const char *ebpfMonLibbpfTextGetWarning(void)
{
    return warning;
}

const char *ebpfMonLibbpfTextGetVerdict(void)
{
    return verdict;
}
