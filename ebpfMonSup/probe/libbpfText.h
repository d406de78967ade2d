/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The texts of libbpf and of the kernel's verifier about the last failure, for the operator. libbpf has one print
 * function for the whole process and gives it no argument, so each thread keeps its own texts here.
 */
#ifndef EBPFMON_LIBBPFTEXT_H
#define EBPFMON_LIBBPFTEXT_H

/* Forgets the texts of this thread. From the first call on, libbpf does not write to stderr any more. Any thread. */
void ebpfMonLibbpfTextBegin(void);

/* The first warning that libbpf gave to this thread since ebpfMonLibbpfTextBegin, and the verdict of the verifier. "":
 * there is none. Valid until the next Begin of this thread. */
const char *ebpfMonLibbpfTextGetWarning(void);
const char *ebpfMonLibbpfTextGetVerdict(void);

#endif
