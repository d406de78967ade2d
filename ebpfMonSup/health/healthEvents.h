/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of health events: an IOC ended, came back, a thread hangs. */
#ifndef EBPFMON_HEALTHEVENTS_H
#define EBPFMON_HEALTHEVENTS_H

#include <compilerDependencies.h>
#include <epicsTime.h>

#include "model/healthValues.h"

/* Adds a line with its time to "health", in place of the oldest when there are EBPFMON_HEALTH_EVENTS; the error log
 * gets it too. */
void ebpfMonHealthEventsAdd(ebpfMonHealth *health, const epicsTimeStamp *at, const char *format, ...)
    EPICS_PRINTF_STYLE(3, 4);

#endif
