/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EBPFMON_OPSTATUS_H
#define EBPFMON_OPSTATUS_H

/* The result of an operation. The room record/ has the words for it (record/shellCommand.h). */
typedef enum {
    ebpfMonOpDone = 0,
    ebpfMonOpRefused,     /* "why" tells what is wrong with the arguments */
    ebpfMonOpFull,        /* there is no room for another level rule */
    ebpfMonOpNotStarted,  /* the monitor does not run yet; it starts with iocInit */
    ebpfMonOpStartFailed, /* the monitor failed to start */
    ebpfMonOpAbsent       /* no monitor has registered its functions */
} ebpfMonOpStatus;

#endif
