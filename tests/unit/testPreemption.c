/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the kernel may preempt a thread that runs a program, from what the kernel says about itself. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "probe/preemption.h"

#define DYNAMIC "#1 SMP PREEMPT_DYNAMIC Debian 6.12.43-1 (2025-08-27)"

static void testVersions(void)
{
    testDiag("Versions of uname");
    testOk(!ebpfMonPreemptionFind("5.10.0-35-amd64", "#1 SMP Debian 5.10.237-1 (2025-05-19)", "", ""),
           "nothing about preemption: it does not");
    testOk(ebpfMonPreemptionFind("5.10.0", "#1 SMP PREEMPT Tue Mar 1 2022", "", ""), "PREEMPT");
    testOk(ebpfMonPreemptionFind("6.1.0-40-rt-amd64", "#1 SMP PREEMPT_RT Debian 6.1.153-1", "", ""), "PREEMPT_RT");
    testOk(ebpfMonPreemptionFind("4.19.0", "#1 SMP PREEMPT RT Debian 4.19", "preempt=none", ""),
           "an old real-time kernel, which knows no modes");
    testOk(ebpfMonPreemptionFind("6.12.0", "#1 SMP PREEMPT_RT Debian", "preempt=none", ""),
           "a real-time kernel refuses the mode none");
    testOk(ebpfMonPreemptionFind("6.6.0", "#1 SMP PREEMPT_AUTO x", "preempt=none", ""),
           "a word that we do not know: it may");
    testOk(ebpfMonPreemptionFind("7.0.0", "#1 SMP Debian", "preempt=none", ""), "from 7.0 on each kernel does");
    testOk(ebpfMonPreemptionFind("10.2.0", DYNAMIC, "", "(none) voluntary full"), "10 comes after 7");
}

static void testModes(void)
{
    static const char release[] = "6.12.43+deb13-amd64";

    testDiag("PREEMPT_DYNAMIC: its mode was chosen when the kernel started, or later");
    testOk(ebpfMonPreemptionFind(release, DYNAMIC, "root=/dev/sda1 quiet\n", ""), "no mode is known: it may");
    testOk(!ebpfMonPreemptionFind(release, DYNAMIC, "root=/dev/sda1 preempt=none\n", ""), "preempt=none at the end");
    testOk(!ebpfMonPreemptionFind(release, DYNAMIC, "preempt=voluntary quiet\n", ""),
           "preempt=voluntary at the begin");
    testOk(ebpfMonPreemptionFind(release, DYNAMIC, "quiet preempt=full\n", ""), "preempt=full");
    testOk(ebpfMonPreemptionFind(release, DYNAMIC, "quiet preempt=lazy\n", ""), "preempt=lazy");
    testOk(ebpfMonPreemptionFind(release, DYNAMIC, "preempt=none preempt=full\n", ""), "the last one counts");
    testOk(!ebpfMonPreemptionFind(release, DYNAMIC, "preempt=none preempt=fast\n", ""),
           "but not one that no kernel knows");
    testOk(ebpfMonPreemptionFind(release, DYNAMIC, "preempt=nonesuch\n", ""), "nor a longer word");
    testOk(ebpfMonPreemptionFind(release, DYNAMIC, "rcu.preempt=none\n", ""), "nor another parameter with this end");
    testOk(ebpfMonPreemptionFind(release, DYNAMIC, "quiet -- preempt=none\n", ""), "nor what is for init");
    testOk(!ebpfMonPreemptionFind(release, DYNAMIC, "preempt=full", "(none) voluntary full lazy\n"),
           "the file says none: somebody changed the mode after the start");
    testOk(!ebpfMonPreemptionFind(release, DYNAMIC, "", "none (voluntary) full\n"), "the file says voluntary");
    testOk(ebpfMonPreemptionFind(release, DYNAMIC, "preempt=none", "none voluntary (full)\n"), "the file says full");
    testOk(ebpfMonPreemptionFind(release, DYNAMIC, "preempt=none", "none voluntary full (lazy)\n"),
           "the file says lazy");
}

static void testTracepoints(void)
{
    testDiag("Programs at tracepoints");
    testOk(!ebpfMonPreemptionAtTracepoints("6.12.43", DYNAMIC), "not before 7.0 …");
    testOk(ebpfMonPreemptionAtTracepoints("6.12.43", "#1 SMP PREEMPT_RT Debian"), "… except in a real-time kernel");
    testOk(ebpfMonPreemptionAtTracepoints("7.0.0", DYNAMIC), "since then they may be preempted");
}

MAIN(testPreemption)
{
    int first;

    testPlan(8 + 14 + 3 + 1);
    testVersions();
    testModes();
    testTracepoints();
    first = ebpfMonKernelMayPreempt();
    testOk(first == ebpfMonKernelMayPreempt(), "this kernel %s", first ? "may preempt" : "does not preempt");
    return testDone();
}
