/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets uprobes. All probes in processes pass here, so that none is set where it would do harm. */
#ifndef EBPFMON_UPROBE_H
#define EBPFMON_UPROBE_H

#include "probe/closer.h"
#include "probe/uprobeMulti.h"

struct bpf_program;

#define EBPFMON_UPROBE_HARMS (-1) /* among errnos: a probe there would change data of the process (nopTrial.h) */

/* Attaches one program at all places: with uprobe_multi by one link, else by one link for each place. *probes is
 * increased by the number of links; the caller closes them, also after a failure. 0, errno or EBPFMON_UPROBE_HARMS. */
int ebpfMonUprobeSet(struct bpf_program *prog, const ebpfMonUprobePlaces *places, int isReturn, ebpfMonProbe *probe,
                     unsigned *probes);

/* What ebpfMonUprobeSet would return because of the place alone, on this kernel. 0: it may be probed. */
int ebpfMonUprobeCheck(const char *path, const uint64_t *offset, unsigned count);

/* The text of an error of these functions. */
const char *ebpfMonUprobeErrorText(int err);

#endif
