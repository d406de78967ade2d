/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs in folders where other users may write: no user can make the monitor write to another file. As root. */
#include "logTest.h"
#include <sys/sysmacros.h>

#define OTHER_UID 65534
#define VICTIM    "not to be touched\n"

static void makeVictim(void)
{
    FILE *f = fopen(pathOf("victim"), "w");

    fputs(VICTIM, f);
    fclose(f);
    chmod(pathOf("victim"), 0600);
}

static int isVictimUntouched(void)
{
    size_t len;
    char *text = contents(pathOf("victim"), &len);
    int is = text && strcmp(text, VICTIM) == 0;

    free(text);
    return is;
}

static int makeLink(const char *path)
{
    return symlink(pathOf("victim"), path);
}

static int makeLinkToNothing(const char *path)
{
    return symlink(pathOf("nothing"), path);
}

static int makeHardLink(const char *path)
{
    return link(pathOf("victim"), path);
}

static int makePipe(const char *path)
{
    return mkfifo(path, 0666);
}

static int makeDevice(const char *path)
{
    return mknod(path, S_IFCHR | 0666, makedev(1, 7)); /* /dev/full */
}

static int makeOthersFile(const char *path)
{
    return mknod(path, S_IFREG | 0666, 0) || chown(path, OTHER_UID, OTHER_UID) ? -1 : 0;
}

/* Another user has made a file at the place of the log. */
static void testTrap(const char *what, int (*make)(const char *path), const char *message)
{
    testDiag("%s", what);
    begin();
    makeVictim();
    if (make(pathOf("trap/t.json")))
        testAbort("%s: %s", what, strerror(errno));
    eltc(0);
    testOk1(startJsonLog("trap/t.json", 0, 0, 3) == 0);
    for (unsigned i = 0; i < 100; i++)
        putNumber(i);
    testOk(until(isInTrouble, message), "%s", message);
    testOk(isVictimUntouched() && !hasFile(pathOf("nothing")), "no other file was written");
    unlink(pathOf("trap/t.json"));
    testOk(until(isFine, NULL), "the log goes on when the obstacle is gone");
    ebpfMonPutLogsStop(logs, 10);
    testOk(written() == 100 && lost() == 0 && isVictimUntouched(), "%" PRIu64 " written", written());
    eltc(1);
    unlink(pathOf("trap/t.json"));
    unlink(pathOf("victim"));
}

/* While the log is written, another user replaces it with a link. The monitor looks once per second. */
static void testTrapLater(void)
{
    testDiag("a symbolic link in place of the log");
    begin();
    makeVictim();
    eltc(0);
    testOk1(startJsonLog("trap/t.json", 0, 0, 3) == 0);
    putNumber(1);
    writeUntil(1);
    unlink(pathOf("trap/t.json"));
    makeLink(pathOf("trap/t.json"));
    testOk1(until(isInTrouble, "it is a symbolic link"));
    putNumber(2);
    ebpfMonPutLogsStop(logs, 1);
    testOk1(isVictimUntouched() && lost() == 1);
    eltc(1);
    unlink(pathOf("trap/t.json"));
}

static void testOthersFolder(mode_t mode, uid_t uid, const char *message)
{
    testDiag("a folder %o of %u", (unsigned)mode, (unsigned)uid);
    begin();
    eltc(0);
    mkdir(pathOf("others"), 0755);
    testOk1(chmod(pathOf("others"), mode) == 0 && chown(pathOf("others"), uid, uid) == 0);
    testOk1(startJsonLog("others/o.json", 0, 0, 3) == 0);
    putNumber(1);
    testOk(until(isInTrouble, message), "%s", message);
    ebpfMonPutLogsStop(logs, 1);
    testOk1(!hasFile(pathOf("others/o.json")) && lost() == 1);
    rmdir(pathOf("others"));
    eltc(1);
}

/* A link to a folder: a link of root is accepted, a link of another user is not. */
static void testLinkedFolder(uid_t uid, int isRefused)
{
    testDiag("a link of %u to a folder", (unsigned)uid);
    begin();
    eltc(!isRefused);
    mkdir(pathOf("real"), 0755);
    testOk1(symlink(pathOf("real"), pathOf("way")) == 0 && lchown(pathOf("way"), uid, uid) == 0);
    testOk1(startJsonLog("way/w.json", 0, 0, 3) == 0);
    putNumber(1);
    if (isRefused)
        testOk1(until(isInTrouble, "who could lead it elsewhere"));
    else
        writeUntil(1);
    ebpfMonPutLogsStop(logs, 1);
    testOk1(hasFile(pathOf("real/w.json")) == !isRefused);
    eltc(1);
    unlink(pathOf("real/w.json"));
    unlink(pathOf("way"));
    rmdir(pathOf("real"));
}

/* Another user has files with the numbered names, in a folder with the rights of /tmp. */
static void testRotationBesideTraps(void)
{
    struct stat st;
    mode_t mask = umask(0);

    testDiag("rotation beside symbolic links of other users; the mode of the file");
    begin();
    makeVictim();
    testOk1(symlink(pathOf("victim"), pathOf("trap/r.json.1")) == 0 &&
            lchown(pathOf("trap/r.json.1"), OTHER_UID, OTHER_UID) == 0);
    testOk1(startJsonLog("trap/r.json", 0, 0, 2) == 0);
    for (unsigned i = 0; i < 3; i++) {
        putNumber(i);
        writeUntil(i + 1);
        testOk1(ebpfMonPutLogsRotate(logs) == 0);
        testOk1(until(hasFile, pathOf("trap/r.json")));
    }
    putNumber(3);
    writeUntil(4);
    ebpfMonPutLogsStop(logs, 10);
    testOk1(isVictimUntouched() && lost() == 0);
    testOk(stat(pathOf("trap/r.json"), &st) == 0 && (st.st_mode & 07777) == 0640 && st.st_uid == geteuid(),
           "mode %o, uid %u", (unsigned)st.st_mode, (unsigned)st.st_uid);
    umask(mask);
}

MAIN(testOwnFile)
{
    testPlan(0);
    makeLogFolder("testOwnFile");
    logs = ebpfMonPutLogsNew();
    mkdir(pathOf("trap"), 0755);
    chmod(pathOf("trap"), 01777);
    testTrap("a symbolic link", makeLink, "it is a symbolic link; remove it");
    testTrap("a symbolic link to nothing", makeLinkToNothing, "it is a symbolic link; remove it");
    testTrap("a hard link", makeHardLink, "a second name (hard link); remove it");
    testTrap("a pipe", makePipe, "it is no regular file; remove it");
    testTrap("a device", makeDevice, "it is no regular file; remove it");
    testTrap("a file of somebody else", makeOthersFile, "it belongs to uid 65534; remove it");
    testTrapLater();
    testOthersFolder(0755, OTHER_UID, "belongs to uid 65534");
    testOthersFolder(0777, 0, "everybody may write in");
    testLinkedFolder(0, 0);
    testLinkedFolder(OTHER_UID, 1);
    testRotationBesideTraps();
    removeAll(dir);
    return testDone();
}
