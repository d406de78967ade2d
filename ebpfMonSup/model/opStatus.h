/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EBPFMON_OPSTATUS_H
#define EBPFMON_OPSTATUS_H

/* What became of an operation. The record room has the words for it (record/shellCommand.h). */
typedef enum {
    ebpfMonOpDone = 0,
    ebpfMonOpRefused,     /* "why" says what is wrong with the arguments */
    ebpfMonOpFull,        /* no room for another level rule */
    ebpfMonOpNotStarted,  /* the monitor starts with iocInit */
    ebpfMonOpStartFailed, /* the monitor could not start */
    ebpfMonOpAbsent       /* no monitor has registered itself */
} ebpfMonOpStatus;

#endif
