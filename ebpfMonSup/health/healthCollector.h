/* SPDX-License-Identifier: BSD-3-Clause */
/* Once a second: how the IOCs fare, whether their scan threads keep time, and which ended, came back or hang. */
#ifndef EBPFMON_HEALTHCOLLECTOR_H
#define EBPFMON_HEALTHCOLLECTOR_H

/* The publishing thread's alone. */
void ebpfMonHealthCollect(void);

#endif
