/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes to which something happened: each note is taken once, and new ones replace the oldest. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "watch/iocFinder.h"

static void testTake(ebpfMonPidNotes *notes)
{
    testOk(!ebpfMonPidNotesTake(notes, 1), "nothing was noted");
    ebpfMonPidNotesAdd(notes, 1);
    ebpfMonPidNotesAdd(notes, 2);
    ebpfMonPidNotesAdd(notes, 1);
    testOk(!ebpfMonPidNotesTake(notes, 3), "another process was not noted");
    testOk(ebpfMonPidNotesTake(notes, 1), "a process that was noted");
    testOk(!ebpfMonPidNotesTake(notes, 1), "all its notes were taken at once");
    testOk(ebpfMonPidNotesTake(notes, 2), "the notes of the others stay");
}

static void testFull(ebpfMonPidNotes *notes)
{
    int kept = 0;

    for (pid_t pid = 1; pid <= EBPFMON_PID_NOTES + 10; pid++)
        ebpfMonPidNotesAdd(notes, pid);
    for (pid_t pid = 1; pid <= 10; pid++)
        kept += ebpfMonPidNotesTake(notes, pid);
    testOk(kept == 0, "the oldest made room");
    for (pid_t pid = 11; pid <= EBPFMON_PID_NOTES + 10; pid++)
        kept += ebpfMonPidNotesTake(notes, pid);
    testOk(kept == EBPFMON_PID_NOTES, "the others are there");
    ebpfMonPidNotesAdd(notes, 7);
    testOk(ebpfMonPidNotesTake(notes, 7), "there is room again");
}

MAIN(testPidNotes)
{
    ebpfMonPidNotes *notes = ebpfMonPidNotesNew();

    testPlan(8);
    testTake(notes);
    testFull(notes);
    ebpfMonPidNotesFree(notes);
    return testDone();
}
