/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs to files: rotation, files that others move, and disks that are full. As root in a mount namespace of its own:
 * the full disk is a small tmpfs. */
#include "logTest.h"
#include <fcntl.h>
#include <math.h>

static int grown(const void *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size > 0;
}

static void testRotationBySize(void)
{
    enum { N = 3000 };
    static unsigned char seen[N];
    char name[32];
    unsigned missing = 0;
    int whole = 0, files = 0;
    struct stat st;

    testDiag("rotation by size");
    begin();
    putNumber(0); /* no log: no line is written */
    testOk1(startJsonLog("size.json", 0.05, 0, 20) == 0);
    for (unsigned i = 0; i < N; i++)
        putNumber(i);
    ebpfMonPutLogsStop(logs, 10);
    testOk(written() == N && lost() == 0, "%" PRIu64 " lines written", written());
    for (int i = 0; i < 25; i++) {
        snprintf(name, sizeof(name), i ? "size.json.%d" : "size.json", i);
        if (stat(pathOf(name), &st) == 0) {
            int n = readLines(pathOf(name), seen, N);

            files++;
            if (n < 0 || st.st_size > 50000)
                testFail("%s: %d lines, %ld bytes", name, n, (long)st.st_size);
            whole += n;
        }
    }
    for (unsigned i = 0; i < N; i++)
        missing += seen[i] != 1;
    testOk(whole == N && !missing && files > 5, "%d whole lines in %d files, %u missing or there twice", whole, files,
           missing);
}

static void testRotation(void)
{
    unsigned others = 0;
    char name[32];
    double end;

    testDiag("rotation on request, by age, by other programs; how many files are kept");
    begin();
    testOk1(startJsonLog("asked.json", 0, 0, 2) == 0);
    for (unsigned i = 0; i < 4; i++) {
        putNumber(i);
        writeUntil(i + 1);
        testOk1(ebpfMonPutLogsRotate(logs) == 0);
        if (i < 2) {
            snprintf(name, sizeof(name), "asked.json.%u", i + 1);
            testOk(until(hasFile, pathOf(name)), "%s", name);
        }
    }
    putNumber(4);
    writeUntil(5);
    testOk1(!hasFile(pathOf("asked.json.3")));
    testOk1(readLines(pathOf("asked.json"), NULL, 0) == 1 && readLines(pathOf("asked.json.1"), NULL, 0) == 1);
    rename(pathOf("asked.json"), pathOf("moved"));
    testOk(until(hasFile, pathOf("asked.json")), "a file that was removed is made again");
    putNumber(5);
    testOk(until(grown, pathOf("asked.json")), "... and written");
    rename(pathOf("asked.json"), pathOf("moved"));
    close(open(pathOf("asked.json"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    end = ebpfMonClockSeconds() + DEADLINE;
    while (!grown(pathOf("asked.json")) && ebpfMonClockSeconds() < end) {
        ebpfMonPut p = somePut(1000);

        others++;
        ebpfMonPutLogsAddPut(logs, &p);
        epicsThreadSleep(0.05);
    }
    testOk(grown(pathOf("asked.json")), "another program replaced the file: the new one is written");
    testOk1(startJsonLog("asked.json", 0, 0.1 / 3600, 2) == 0); /* another age for the same log */
    unlink(pathOf("asked.json.1"));
    putNumber(6);
    testOk(until(hasFile, pathOf("asked.json.1")), "the file is rotated by age");
    ebpfMonPutLogsStop(logs, 10);
    testOk(written() == 7 + others && lost() == 0, "%" PRIu64 " lines", written());
}

static void testTornLine(void)
{
    size_t len;
    char *text;
    FILE *f;

    testDiag("half a line, which a killed monitor left");
    begin();
    f = fopen(pathOf("asked.json"), "w");
    fputs("{\"half", f);
    fclose(f);
    startJsonLog("asked.json", 0, 0, 0);
    putNumber(7);
    writeUntil(1);
    ebpfMonPutLogsStop(logs, 10);
    text = contents(pathOf("asked.json"), &len);
    testOk(strncmp(text, "{\"half\n{\"time", 13) == 0, "%.20s", text);
    free(text);
}

static void testRefused(void)
{
    testDiag("settings that are refused");
    eltc(0);
    testOk1(ebpfMonPutLogsAddJson(logs, dir, 0, 0, 0, ebpfMonLogAll) != 0);
    testOk1(startJsonLog("x", -1, 0, 0) != 0 && startJsonLog("x", NAN, 0, 0) != 0 &&
            startJsonLog("x", 0, 0, 5000) != 0);
    testOk1(ebpfMonPutLogsAddCaPutLog(logs, "no such host", 0, ebpfMonLogAll, "") != 0);
    testOk1(ebpfMonPutLogsSetMetadata(logs, "pv", "x") != 0);
    testOk1(ebpfMonPutLogsRotate(logs) != 0);
    startJsonLog("twice", 0, 0, 0);
    testOk1(ebpfMonPutLogsAddCaPutLog(logs, pathOf("twice"), 0, ebpfMonLogAll, "") != 0);
    ebpfMonPutLogsStop(logs, 10);
    eltc(1);
}

static void testLateFolder(void)
{
    eltc(0);
    testDiag("a file that can be opened only later");
    begin();
    testOk1(startJsonLog("no/such.json", 0, 0, 0) == 0);
    putNumber(0);
    testOk1(until(isInTrouble, "cannot open its folder"));
    mkdir(pathOf("no"), 0755);
    writeUntil(1);
    testOk1(until(isFine, NULL));
    ebpfMonPutLogsStop(logs, 10);
    testOk1(readLines(pathOf("no/such.json"), NULL, 0) == 1 && lost() == 0);
    eltc(1);
}

/* A disk of 400 KB with 100 KB free. Nonzero if it cannot be made. */
static int makeSmallDisk(void)
{
    char *filler;
    int fd;

    if (!alone || mkdir(pathOf("disk"), 0755) || mount("none", pathOf("disk"), "tmpfs", 0, "size=400k"))
        return -1;
    filler = calloc(1, 300000);
    fd = open(pathOf("disk/filler"), O_WRONLY | O_CREAT, 0644);
    if (write(fd, filler, 300000) != 300000)
        testDiag("filler: %s", strerror(errno));
    close(fd);
    free(filler);
    return 0;
}

static void testFullDisk(void)
{
    enum { N = 20000 };
    static unsigned char seen[N];
    unsigned produced = 0, missing = 0;
    uint64_t told = 0;
    size_t len;
    char *text, *mark;
    int n;

    testDiag("a full disk");
    begin();
    if (makeSmallDisk()) {
        testSkip(6, "needs the right to mount");
        return;
    }
    eltc(0);
    testOk1(startJsonLog("disk/full.json", 0, 0, 0) == 0);
    for (; produced < 4000; produced++)
        putNumber(produced);
    testOk1(until(isInTrouble, "disk full"));
    text = contents(pathOf("disk/full.json"), &len);
    testOk(text && len && text[len - 1] == '\n', "no half line on the full disk (%u bytes)", (unsigned)len);
    free(text);
    unlink(pathOf("disk/filler"));
    testOk1(until(isFine, NULL));
    for (; produced < 4100; produced++)
        putNumber(produced);
    ebpfMonPutLogsStop(logs, 10);
    n = readLines(pathOf("disk/full.json"), seen, N);
    for (unsigned i = 0; i < produced; i++)
        missing += !seen[i];
    text = contents(pathOf("disk/full.json"), &len);
    mark = strstr(text, "\"lost\":");
    if (mark)
        sscanf(mark + 7, "%" SCNu64, &told);
    testOk(n > 0 && missing == lost() && told == lost() && lost() > 100, "%d whole lines, %u missing, %" PRIu64
           " counted, %" PRIu64 " told in the file", n, missing, lost(), told);
    /* one line is not a put: it reports the loss */
    testOk(written() - 1 + lost() == produced, "%" PRIu64 " + %" PRIu64 " of %u", written() - 1, lost(), produced);
    free(text);
    umount(pathOf("disk"));
    eltc(1);
}

MAIN(testLogFile)
{
    testPlan(0);
    makeLogFolder("testLogFile");
    useOwnNamespaces();
    logs = ebpfMonPutLogsNew();
    testRotationBySize();
    testRotation();
    testTornLine();
    testRefused();
    testLateFolder();
    testFullDisk();
    removeAll(dir);
    return testDone();
}
