/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include <epicsStdio.h>
#include <errlog.h>

#include "common/text.h"
#include "health/healthEvents.h"
#include "module/modules.h"

void ebpfMonHealthEventsAdd(ebpfMonHealth *health, const epicsTimeStamp *at, int isTrouble, const char *format, ...)
{
    char *line, text[EBPFMON_HEALTH_LINE];
    size_t used;
    va_list ap;

    health->eventHead = (health->eventHead + 1) % EBPFMON_HEALTH_EVENTS;
    if (health->events < EBPFMON_HEALTH_EVENTS)
        health->events++;
    health->isEventTrouble = isTrouble;
    line = health->event[health->eventHead];
    used = epicsTimeToStrftime(line, EBPFMON_HEALTH_LINE, "%Y-%m-%d %H:%M:%S.%03f ", at);
    va_start(ap, format);
    epicsVsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    ebpfMonTextCopy(line + used, EBPFMON_HEALTH_LINE - used, text);
    ebpfMonModulesTellEvent(at, line + used);
    errlogSevPrintf(errlogInfo, "ebpfMon: %s\n", line + used);
}
