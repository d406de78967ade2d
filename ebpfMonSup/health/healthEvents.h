/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds to the list of health events: an IOC ended or came back, a thread hangs. */
#ifndef EBPFMON_HEALTHEVENTS_H
#define EBPFMON_HEALTHEVENTS_H

#include <compilerDependencies.h>
#include <epicsTime.h>

#include "model/healthValues.h"

/* Adds a line with the time "at" to "health", and writes it to the error log (errlogInfo). If "health" has
 * EBPFMON_HEALTH_EVENTS lines, the new line replaces the oldest. "isTrouble": somebody has to act. No
 * lock; the thread that owns "health". */
void ebpfMonHealthEventsAdd(ebpfMonHealth *health, const epicsTimeStamp *at, int isTrouble, const char *format, ...)
    EPICS_PRINTF_STYLE(4, 5);

#endif
