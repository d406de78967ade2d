/* SPDX-License-Identifier: BSD-3-Clause */
/* Why access security lets a client not write: the rules of the IOC (asLib.h, pasbase), read from its memory. */
#ifndef EBPFMON_ACCESSRULES_H
#define EBPFMON_ACCESSRULES_H

#include <stddef.h>
#include <sys/types.h>

#include "host/memory.h"

/* "ASG OPS: RULE(1,WRITE) wants A=1, which is not so: INPA (REC) is not connected or INVALID": for the field ASG of a
 * record, "" for DEFAULT. 0; or -1: there are no rules, or they lie otherwise than in EPICS Base 3.14 to 7.0.8. */
int ebpfMonAccessRulesDescribe(ebpfMonMem *mem, pid_t pid, const char *asg, char *text, size_t size);

#endif
