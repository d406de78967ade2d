/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libbpf and the kernel's verifier said about the last thing that failed, for the operator. libbpf has one print
 * function for the whole process and gives it no argument, so each thread keeps its own texts here.
 */
#ifndef EBPFMON_LIBBPFTEXT_H
#define EBPFMON_LIBBPFTEXT_H

/* Forgets what was said to this thread, and from the first call on keeps libbpf from writing to stderr. Any thread. */
void ebpfMonLibbpfTextBegin(void);

/* The first warning of libbpf to this thread since then, and the verifier's verdict. "": none. */
const char *ebpfMonLibbpfTextGetWarning(void);
const char *ebpfMonLibbpfTextGetVerdict(void);

#endif
