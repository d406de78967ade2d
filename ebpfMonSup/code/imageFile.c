/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "code/callSites.h"
#include "code/codeGraph.h"
#include "code/elfSymbols.h"
#include "code/imageFile.h"
#include "code/machine.h"
#include "code/unwind.h"

/* --- a program without symbols --- */

/* The texts and the order of calls are those of EPICS Base 3.14.12 to 7.0.10: dbTest.c, dbAccess.c,
 * dbNotify.c, dbLock.c, dbCa.c, dbScan.c, callback.c, recGbl.c, rsrv/camessage.c, rsrv/caservertask.c, iocInit.c. */

#define NONE    EBPFMON_NO_FUNCTION
#define ADDRESS (1u << ebpfMonRefAddress)
#define ANY     (ADDRESS | 1u << ebpfMonRefMemory)

#define USERS(s, text) ebpfMonCodeSearchUsers(s, text, sizeof(text))        /* with its NUL: the whole text */
#define BEGIN(s, text) ebpfMonCodeSearchUsers(s, text, sizeof(text) - 1)

typedef ebpfMonCodeSearch Search;
typedef ebpfMonCodeUsers Users;

static uint32_t getOnly(Users users)
{
    return ebpfMonCodeUsersGetOnly(&users);
}

static void setSymbol(const Search *s, uint32_t fn, ebpfMonElfSymbol *symbol)
{
    if (fn != NONE)
        *symbol = (ebpfMonElfSymbol){ s->g->begin[fn], s->g->begin[fn + 1] - s->g->begin[fn], 1, 0 };
}

static void setVariable(uint64_t vaddr, size_t size, ebpfMonElfSymbol *symbol)
{
    *symbol = (ebpfMonElfSymbol){ vaddr, size, 1, 0 };
}

typedef struct {
    uint32_t process, lock, unlock, put, putField;
    Users once; /* scanOnce, or scanOnceCallback, or both */
} Core;

/* dbtr locks, processes, unlocks; so do dbScan.c's threads. dbProcess is the one with its own texts. */
static int findProcess(const Search *s, Core *c)
{
    uint32_t dbtr = getOnly(USERS(s, "dbtr(dbProcess)")), before[2] = { NONE, NONE }, to;
    int again = 0;

    c->process = getOnly(USERS(s, "%s: No RSET for %s\n"));
    if (dbtr == NONE || c->process == NONE)
        return -1;
    for (size_t at = s->g->first[dbtr]; ebpfMonCodeSearchNextCall(s, dbtr, &at, &to);
         before[0] = before[1], before[1] = to)
        if (before[1] == c->process) {
            c->lock = before[0];
            c->unlock = to;
        }
    if (c->lock == NONE || c->unlock == NONE || c->lock == c->unlock)
        return -1;
    for (uint32_t fn = 0; fn < s->g->count && !again; fn++)
        again = fn != dbtr && ebpfMonCodeSearchCallsInOrder(s, fn, c->lock, c->process, c->unlock);
    return again ? 0 : -1;
}

/* dbpf calls dbPutField, which locks, calls dbPut, unlocks; dbPut has a text of its own. */
static int findPut(const Search *s, Core *c)
{
    uint32_t dbpf = getOnly(BEGIN(s, "Usage: dbpf \"pv name\", \"value\"")), to;

    c->put = getOnly(USERS(s, "dbPut: Request type is %d"));
    if (dbpf == NONE || c->put == NONE)
        return -1;
    for (size_t at = s->g->first[dbpf]; ebpfMonCodeSearchNextCall(s, dbpf, &at, &to);)
        if (to != NONE && ebpfMonCodeSearchCallsInOrder(s, to, c->lock, c->put, c->unlock)) {
            c->putField = to;
            return 0;
        }
    return -1;
}

/* What every command uses that says "No database loaded". */
static uint64_t findBase(const Search *s)
{
    Users users = USERS(s, "No database loaded\n");
    uint64_t common[EBPFMON_COMMON_MAX], base = 0;
    unsigned n = users.count < 4 ? 0 : ebpfMonCodeSearchCommon(s, users.fn[0], users.fn[1], ANY, common), left = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned all = 1;

        for (unsigned k = 2; k < users.count; k++)
            all &= !!ebpfMonCodeSearchUses(s, users.fn[k], common[i], ANY);
        if (all) {
            base = common[i];
            left++;
        }
    }
    return left == 1 ? base : 0;
}

static void findNotify(const Search *s, const Core *c, ebpfMonRecognised *found)
{
    uint32_t fn = getOnly(USERS(s, "dbPutNotify:pnotifyPvt was not initialized"));
    int isOld = fn == NONE;

    if (isOld)
        fn = getOnly(USERS(s, "dbPutNotify:pputNotifyPvt was not initialized"));
    if (!ebpfMonCodeSearchCalls(s, fn, c->lock) || !ebpfMonCodeSearchCalls(s, fn, c->unlock))
        return;
    setSymbol(s, fn, &found->fn[ebpfMonFnProcessNotify]);
    found->isOldNotify = isOld;
}

/* Nonzero: there is a function that both call. */
static int callSame(const Search *s, uint32_t a, uint32_t b)
{
    uint32_t to;

    for (size_t at = s->g->first[a]; ebpfMonCodeSearchNextCall(s, a, &at, &to);)
        if (ebpfMonCodeSearchCalls(s, b, to))
            return 1;
    return 0;
}

/* dbScanLockMany calls it when it has to begin again. If the compiler has put a copy of it there instead, it is the
 * only other function with its text that releases the mutex as dbScanUnlock does. */
static void findUnlockMany(const Search *s, const Core *c, ebpfMonRecognised *found)
{
    Users users = USERS(s, "plock->ownerlocker==locker"), lock = USERS(s, "plock->ownerlocker==NULL");
    uint32_t best = NONE;
    int isCalled = 0;

    for (unsigned i = 0; i < users.count; i++) {
        if (ebpfMonCodeUsersHave(&lock, users.fn[i]))
            continue;
        if (best != NONE)
            return;
        best = users.fn[i];
    }
    for (unsigned i = 0; best != NONE && i < lock.count; i++)
        isCalled |= ebpfMonCodeSearchCalls(s, lock.fn[i], best) ||
                    (ebpfMonCodeUsersHave(&users, lock.fn[i]) && callSame(s, best, c->unlock));
    if (isCalled)
        setSymbol(s, best, &found->fn[ebpfMonFnScanUnlockMany]);
}

/* It converts as dbPut does, by the same two tables; no other function of dbCa.c has them both. */
static void findCaPutLink(const Search *s, const Core *c, ebpfMonRecognised *found)
{
    Users users = USERS(s, "pca->plink");
    uint32_t best = NONE;
    unsigned n = 0;

    for (unsigned i = 0; i < users.count; i++) {
        unsigned common = 0;
        uint64_t last = 0;

        for (size_t k = s->g->first[c->put]; k < s->g->first[c->put + 1]; k++) {
            uint64_t to = s->g->ref[k].to;

            if (s->g->ref[k].kind != ebpfMonRefAddress || to == last ||
                !ebpfMonCodeSearchUses(s, users.fn[i], to, ADDRESS))
                continue;
            common++;
            last = to;
        }
        if (common >= 2) {
            best = users.fn[i];
            n++;
        }
    }
    if (n == 1)
        setSymbol(s, best, &found->fn[ebpfMonFnCaPutLink]);
}

/* It does three things: the link, the notification as dbProcess does it, and scanOnce. */
static void findFwdLink(const Search *s, const Core *c, ebpfMonRecognised *found)
{
    uint32_t best = NONE, n = 0;

    for (uint32_t fn = 0; fn < s->g->count && c->once.count; fn++) {
        uint32_t to[4], count = 0;

        for (size_t at = s->g->first[fn]; count < 4 && ebpfMonCodeSearchNextCall(s, fn, &at, &to[count]);)
            count++;
        if (count == 3 && ebpfMonCodeSearchCalls(s, c->process, to[1]) &&
            (ebpfMonCodeUsersHave(&c->once, to[2]) || ebpfMonCodeSearchCalls(s, to[2], c->once.fn[0]))) {
            best = fn;
            n++;
        }
    }
    if (n == 1)
        setSymbol(s, best, &found->fn[ebpfMonFnFwdLink]);
}

/* Nonzero: both call something, and the same. */
static int callAlike(const Search *s, uint32_t a, uint32_t b)
{
    uint32_t to;
    int any = 0;

    for (int turn = 0; turn < 2; turn++)
        for (size_t at = s->g->first[turn ? a : b]; ebpfMonCodeSearchNextCall(s, turn ? a : b, &at, &to); any = 1)
            if (!ebpfMonCodeSearchCalls(s, turn ? b : a, to))
                return 0;
    return any;
}

/* callbackTask asks whether a queue is empty, pops, and asks again. It uses the queues of callbackRequest, which
 * pushes: by the same lock as pop. */
static void findPop(const Search *s, uint32_t request, ebpfMonRecognised *found)
{
    uint64_t common[EBPFMON_COMMON_MAX];
    uint32_t best = NONE;

    for (uint32_t fn = 0; fn < s->g->count && !ebpfMonCodeSearchIsOver(s); fn++) {
        uint32_t before[2] = { NONE, NONE }, to;

        if (fn == request || !ebpfMonCodeSearchCommon(s, fn, request, ADDRESS, common))
            continue;
        for (size_t at = s->g->first[fn]; ebpfMonCodeSearchNextCall(s, fn, &at, &to);
             before[0] = before[1], before[1] = to) {
            uint32_t pop = before[1], push;
            int isPop = 0;

            if (to == NONE || to != before[0] || pop == NONE || pop == to || pop == best)
                continue;
            for (size_t k = s->g->first[request]; !isPop && ebpfMonCodeSearchNextCall(s, request, &k, &push);)
                isPop = push != NONE && push != pop && callAlike(s, push, pop);
            if (isPop && best != NONE)
                return;
            if (isPop)
                best = pop;
        }
    }
    setSymbol(s, best, &found->fn[ebpfMonFnRingPop]);
}

static int callsNothing(const Search *s, uint32_t fn)
{
    size_t at = s->g->first[fn];
    uint32_t to;

    return !ebpfMonCodeSearchNextCall(s, fn, &at, &to);
}

/* The only variable that it uses, 0: none, or several. */
static uint64_t findOnlyVariable(const Search *s, uint32_t fn)
{
    uint64_t common[EBPFMON_COMMON_MAX];

    return ebpfMonCodeSearchCommon(s, fn, fn, ANY, common) == 1 ? common[0] : 0;
}

/* It starts the timer of the callback, makes one where there is none, and starts that. Its timer queue is made where
 * the queues of callbackRequest are. */
static void findDelayed(const Search *s, uint32_t request, ebpfMonRecognised *found)
{
    uint64_t common[EBPFMON_COMMON_MAX];
    uint32_t best = NONE, n = 0;

    for (uint32_t fn = 0; fn < s->g->count && !ebpfMonCodeSearchIsOver(s); fn++) {
        uint32_t to[4] = { NONE, NONE, NONE, NONE }, count = 0;
        uint64_t queue;
        int isThere = 0;

        for (size_t at = s->g->first[fn]; count < 4 && ebpfMonCodeSearchNextCall(s, fn, &at, &to[count]);)
            count++;
        if (count != 3 || to[0] == NONE || to[0] != to[2] || to[0] == to[1] || !(queue = findOnlyVariable(s, fn)))
            continue;
        for (uint32_t in = 0; in < s->g->count && !isThere && !ebpfMonCodeSearchIsOver(s); in++)
            isThere = in != fn && ebpfMonCodeSearchUses(s, in, queue, ANY) &&
                      ebpfMonCodeSearchCommon(s, in, request, ADDRESS, common);
        if (isThere) {
            best = fn;
            n++;
        }
    }
    if (n == 1)
        setSymbol(s, best, &found->fn[ebpfMonFnCallbackDelayed]);
}

/* dbNotifyCompletion requests one. Other functions may have a copy of callbackRequest in them. */
static uint32_t findRequest(const Search *s, const Core *c)
{
    Users users = BEGIN(s, "callbackRequest: ");
    uint32_t best = NONE, to;

    for (size_t at = s->g->first[c->process]; ebpfMonCodeSearchNextCall(s, c->process, &at, &to);)
        for (unsigned i = 0; i < users.count; i++) {
            if (!ebpfMonCodeSearchCalls(s, to, users.fn[i]) || users.fn[i] == best)
                continue;
            if (best != NONE)
                return NONE;
            best = users.fn[i];
        }
    return best;
}

static void findQueues(const Search *s, const Core *c, ebpfMonRecognised *found)
{
    uint32_t request = findRequest(s, c);

    if (request != NONE) {
        setSymbol(s, request, &found->fn[ebpfMonFnCallback]);
        findPop(s, request, found);
        findDelayed(s, request, found);
    }
    setSymbol(s, getOnly(c->once), &found->fn[ebpfMonFnScanOnce]);
}

/* scanOnce may have a copy of scanOnceCallback in it. */
static Users findOnce(const Search *s)
{
    Users users = USERS(s, "scanOnce: Ring buffer overflow\n");

    return users.count ? users : USERS(s, "%s : \033[35;1mWARNING\033[0m scanOnce: Ring buffer overflow\n"); /* 7.0.9 */
}

/* Nonzero: the function lies among these functions, as functions of one source file do. */
static int isAmong(const Search *s, const Users *users, uint32_t fn)
{
    int before = 0, behind = 0;

    for (unsigned i = 0; i < users->count; i++) {
        before |= users->fn[i] < fn;
        behind |= users->fn[i] > fn;
    }
    return before && behind && fn < s->g->count;
}

/* rsrvCheckPut calls nothing and reads asActive alone; write_notify_action calls it, and write_action, which is in the
 * same source file as both. */
static void findCheckPut(const Search *s, const Users *source, ebpfMonRecognised *found)
{
    uint32_t notify = getOnly(USERS(s, "put call back time out")), best = NONE, to;
    unsigned n = 0;

    if (notify == NONE || !ebpfMonCodeUsersHave(source, notify))
        return;
    for (size_t at = s->g->first[notify]; ebpfMonCodeSearchNextCall(s, notify, &at, &to);) {
        unsigned others = 0;

        if (to == NONE || to == best || !isAmong(s, source, to) || !callsNothing(s, to) || !findOnlyVariable(s, to))
            continue;
        for (unsigned i = 0; i < source->count; i++)
            others += source->fn[i] != notify && ebpfMonCodeSearchCalls(s, source->fn[i], to);
        if (others) {
            best = to;
            n++;
        }
    }
    if (n != 1)
        return;
    setSymbol(s, best, &found->fn[ebpfMonFnCheckPut]);
    setVariable(findOnlyVariable(s, best), sizeof(int), &found->var[ebpfMonVarAs]);
}

/* casr and camsgtask both use clientQ and its lock. camessage.c uses the lock, but not the list. camsgtask takes the
 * address of the list (ellDelete); casr may only read its first element. */
static void setClients(const Search *s, uint32_t casr, uint32_t task, const Users *source, ebpfMonRecognised *found)
{
    uint64_t common[EBPFMON_COMMON_MAX], clients = 0;
    unsigned n = ebpfMonCodeSearchCommon(s, casr, task, ANY, common), left = 0;

    for (unsigned i = 0; i < n; i++) {
        int isOther = !ebpfMonCodeSearchUses(s, task, common[i], ADDRESS);

        for (unsigned k = 0; k < source->count; k++)
            isOther |= ebpfMonCodeSearchUses(s, source->fn[k], common[i], ANY);
        if (!isOther) {
            clients = common[i];
            left++;
        }
    }
    if (left == 1)
        setVariable(clients, 0, &found->var[ebpfMonVarClients]);
}

/* The files of rsrv: what asserts in a source file has its name. */
static void findServer(const Search *s, ebpfMonRecognised *found)
{
    static const char *const names[] = { "../rsrv/camessage.c", "../camessage.c", "../../../src/ioc/rsrv/camessage.c" };
    uint32_t message = getOnly(USERS(s, "CAS: Missaligned protocol rejected")), casr, task;
    Users source = { 0 };

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        Users users = ebpfMonCodeSearchUsers(s, names[i], strlen(names[i]) + 1);

        for (unsigned k = 0; k < users.count; k++)
            ebpfMonCodeUsersAdd(&source, users.fn[k]);
    }
    Users codes = USERS(s, "invalid (damaged?) request code from TCP");

    if (message != NONE && ebpfMonCodeUsersHave(&codes, message))
        setSymbol(s, message, &found->fn[ebpfMonFnCamessage]);
    findCheckPut(s, &source, found);
    casr = getOnly(USERS(s, "Channel Access Server V%s\n"));
    task = getOnly(USERS(s, "CAS: forcing disconnect from %s\n"));
    if (casr != NONE && task != NONE && ebpfMonCodeSearchCalls(s, task, message))
        setClients(s, casr, task, &source, found);
}

/* iocRun calls scanRun, iocPause calls scanPause. Both set interruptAccept. It is the only variable in both that other
 * files use, too, so it is the only one whose address is taken. */
static void findInterrupt(const Search *s, ebpfMonRecognised *found)
{
    uint32_t run = getOnly(USERS(s, "All initialization complete")), scanRun;
    uint32_t pause = getOnly(USERS(s, "iocPause: IOC suspended\n")), scanPause;
    uint64_t common[EBPFMON_COMMON_MAX];

    if (run == NONE || pause == NONE)
        return;
    for (size_t at = s->g->first[run]; ebpfMonCodeSearchNextCall(s, run, &at, &scanRun);)
        for (size_t at2 = s->g->first[pause];
             scanRun != NONE && ebpfMonCodeSearchNextCall(s, pause, &at2, &scanPause);) {
            if (scanPause == NONE || scanPause == scanRun || !callsNothing(s, scanRun) || !callsNothing(s, scanPause) ||
                ebpfMonCodeSearchCommon(s, scanRun, scanPause, ADDRESS, common) != 1)
                continue;
            setVariable(common[0], sizeof(int), &found->var[ebpfMonVarInterrupt]);
            return;
        }
}

/* dbProcess asks how many lock sets have breakpoints; the command dbb counts them. */
static void findBreakpoints(const Search *s, const Core *c, ebpfMonRecognised *found)
{
    Users users = BEGIN(s, "   BKPT> ");
    uint64_t common[EBPFMON_COMMON_MAX], best = 0;

    for (unsigned i = 0; i < users.count; i++) {
        unsigned n = users.fn[i] == c->process ? 0 : ebpfMonCodeSearchCommon(s, c->process, users.fn[i], ANY, common);

        if (n > 1 || (n == 1 && best && common[0] != best))
            return;
        if (n == 1)
            best = common[0];
    }
    if (best)
        setVariable(best, sizeof(long), &found->var[ebpfMonVarBreakpoints]);
}

static int findFunctions(const Search *s, ebpfMonRecognised *found)
{
    Core c = { NONE, NONE, NONE, NONE, NONE, { 0 } };
    uint64_t base;

    if (findProcess(s, &c) || findPut(s, &c) || !(base = findBase(s)))
        return -1;
    setSymbol(s, c.process, &found->fn[ebpfMonFnProcess]);
    setSymbol(s, c.lock, &found->fn[ebpfMonFnScanLock]);
    setSymbol(s, c.unlock, &found->fn[ebpfMonFnScanUnlock]);
    setSymbol(s, c.put, &found->fn[ebpfMonFnPut]);
    setSymbol(s, c.putField, &found->fn[ebpfMonFnPutField]);
    setVariable(base, sizeof(void *), &found->var[ebpfMonVarBase]);
    findNotify(s, &c, found);
    findUnlockMany(s, &c, found);
    findCaPutLink(s, &c, found);
    c.once = findOnce(s);
    findQueues(s, &c, found);
    findFwdLink(s, &c, found);
    findServer(s, found);
    findInterrupt(s, found);
    findBreakpoints(s, &c, found);
    return ebpfMonCodeSearchIsOver(s) ? -1 : 0; /* what was not looked at to the end may be found twice */
}

int ebpfMonRecognise(int fd, ebpfMonRecognised *found)
{
    ebpfMonElfFile file;
    Search s;
    int rc = -1;

    memset(found, 0, sizeof(*found));
    if (ebpfMonElfOpen(&file, fd))
        return -1;
    if (ebpfMonCodeSearchOpen(&s, &file) == 0) {
        rc = findFunctions(&s, found);
        ebpfMonCodeSearchClose(&s);
    }
    ebpfMonElfClose(&file);
    return rc;
}

/* --- a file --- */

/*
 * A program without symbols is an IOC if it holds two texts of iocInit (iocInit.c; the same from EPICS
 * 3.14 to 7), whether it has a shell and a CA server or not. Only programs are searched for these texts: a library that
 * exports nothing is of no use to anyone.
 */

#define MAX_FUNCTION 4096u     /* bytes of code read per function, to see its branches */
#define OLD_NAMES    2
#define SCAN_NOW     ((int)ebpfMonFnCount + (int)ebpfMonVarCount + OLD_NAMES)
#define NAMES        (SCAN_NOW + 1)

const char *const ebpfMonFnNames[ebpfMonFnCount] = {
    "dbPut", "dbPutField", "dbProcessNotify", "rsrvCheckPut", "camessage", "dbScanLock", "dbScanUnlock",
    "dbScanUnlockMany", "dbCaPutLinkCallback", "recGblFwdLink", "dbProcess",
    "callbackRequest", "callbackRequestDelayed", "scanOnceCallback", "epicsRingPointerPop",
    "asAddClient", "_ZN4pvxs4impl8ConnBase8bevReadSEP11buffereventPv",
};

/* What does the same in older releases, with the same first argument. */
static const struct { ebpfMonFn fn; const char *name; } oldNames[OLD_NAMES] = {
    { ebpfMonFnProcessNotify, "dbPutNotify" }, { ebpfMonFnScanOnce, "scanOnce" },
};

static const unsigned fnArgs[ebpfMonFnCount] = {
    [ebpfMonFnPut] = EBPFMON_ARG1 | EBPFMON_ARG2 | EBPFMON_ARG3 | EBPFMON_ARG4,
    [ebpfMonFnPutField] = EBPFMON_ARG1 | EBPFMON_ARG2 | EBPFMON_ARG3 | EBPFMON_ARG4,
    [ebpfMonFnProcessNotify] = EBPFMON_ARG1, [ebpfMonFnCheckPut] = EBPFMON_ARG1,
    [ebpfMonFnCamessage] = EBPFMON_ARG1, [ebpfMonFnScanLock] = EBPFMON_ARG1,
    [ebpfMonFnScanUnlock] = EBPFMON_ARG1, [ebpfMonFnScanUnlockMany] = EBPFMON_ARG1,
    [ebpfMonFnCaPutLink] = EBPFMON_ARG1, [ebpfMonFnFwdLink] = EBPFMON_ARG1, [ebpfMonFnProcess] = EBPFMON_ARG1,
    [ebpfMonFnCallback] = EBPFMON_ARG1, [ebpfMonFnCallbackDelayed] = EBPFMON_ARG1,
    [ebpfMonFnScanOnce] = EBPFMON_ARG1 | EBPFMON_ARG3, [ebpfMonFnRingPop] = EBPFMON_ARG1,
    [ebpfMonFnAddClient] = EBPFMON_ARG1 | EBPFMON_ARG2 | EBPFMON_ARG3 | EBPFMON_ARG4, [ebpfMonFnServe] = EBPFMON_ARG1,
};

static const char *const varNames[ebpfMonVarCount] = {
    "pdbbase", "interruptAccept", "asActive", "epicsReleaseVersion", "clientQ", "lset_stack_count",
};

void ebpfMonImageFileFree(ebpfMonKnown *known)
{
    if (known)
        free((void *)known->binary.calls);
    free(known);
}

/* Fills the site of one function. */
static void findSite(const ebpfMonElfFile *file, const ebpfMonElfSymbol *sym, ebpfMonFn fn, ebpfMonSite *site)
{
    uint8_t code[MAX_FUNCTION];
    uint64_t size = sym->size ? sym->size : 64, offset;
    size_t len = size < sizeof(code) ? (size_t)size : sizeof(code);

    if (!sym->vaddr || ebpfMonElfOffset(file, sym->vaddr, PF_X, &offset))
        return;
    len = ebpfMonElfRead(file, sym->vaddr, code, len);
    ebpfMonMachineFind(file->machine)->pickSite(code, len, fnArgs[fn], fn == ebpfMonFnPut, site);
    site->offset = offset + site->skip;
    site->vaddr = sym->vaddr + site->skip;
}

/* The release is a macro in Base, so there is no variable of that name; its text is what coreRelease,
 * the neighbour of dbProcess, prints (epicsRelease.c, epicsVersion.h): "EPICS R7.0.8.1", and "EPICS 7.0..."
 * in the Python builds of epicscorelibs. libCom has the same text (osdAssert.c), which is all that EPICS 3.14 shows.
 * Of several texts the one of the highest release counts, with "R" before without. */
static void findRelease(const ebpfMonElfFile *file, ebpfMonElfSymbol *var)
{
    int best = 0;

    for (uint64_t at = 0; (at = ebpfMonElfSearch(file, "EPICS ", at)) != 0;) {
        char text[sizeof("EPICS R7.")] = "";
        int isR, rank;

        ebpfMonElfRead(file, at, text, sizeof(text) - 1);
        isR = text[6] == 'R';
        if (text[6 + isR] < '3' || text[6 + isR] > '9' || text[7 + isR] != '.')
            continue;
        rank = 2 * text[6 + isR] + isR;
        if (rank <= best)
            continue;
        best = rank;
        var->vaddr = at;
    }
}

static void useOldNames(ebpfMonElfSymbol *found, ebpfMonBinary *b)
{
    for (int i = 0; i < OLD_NAMES; i++) {
        ebpfMonFn fn = oldNames[i].fn;

        if (found[fn].vaddr)
            continue;
        found[fn] = found[ebpfMonFnCount + ebpfMonVarCount + i];
        b->oldNames |= found[fn].vaddr ? 1u << fn : 0;
    }
}

/* Nonzero: it can be in another file than dbProcess: in libCom, in libpvxs, and in EPICS 3.14 in librsrvIoc. */
static int isElsewhere(int fn)
{
    return fn == ebpfMonFnRingPop || fn == ebpfMonFnCheckPut || fn == ebpfMonFnCamessage || fn >= ebpfMonFnAddClient;
}

#define CHECKPUT_CALLS 4u /* camessage.c: write_action, write_notify_action, access_rights_reply; caservertask.c:
                           * showChanList */

/* A static Base may be compiled so that the compiler puts copies of rsrvCheckPut into its callers: then a probe there
 * sees no put. The IOC is watched as one without this function. */
static void dropCopied(const ebpfMonElfFile *file, ebpfMonElfSymbol *found, ebpfMonBinary *b)
{
    ebpfMonElfSymbol *check = &found[ebpfMonFnCheckPut];
    ebpfMonCallSites *sites = check->vaddr ? ebpfMonCallSitesFind(file, &ebpfMonFnNames[ebpfMonFnCheckPut], check, 1) :
                                             NULL;

    b->isCheckCopied = sites && sites->count < CHECKPUT_CALLS && (sites->complete & 1);
    if (b->isCheckCopied)
        memset(check, 0, sizeof(*check));
    free(sites);
}

static int usesLocks(const ebpfMonElfSymbol *found)
{
    const ebpfMonElfSymbol *lock = &found[ebpfMonFnScanLock], *unlock = &found[ebpfMonFnScanUnlock];

    return lock->isImported || lock->vaddr || unlock->isImported || unlock->vaddr;
}

/* Nonzero: it has all that makes an IOC. */
static int isIoc(const ebpfMonElfSymbol *found)
{
    return found[ebpfMonFnProcess].vaddr && found[ebpfMonFnCount + ebpfMonVarBase].vaddr;
}

/* Nonzero: it has no symbols, and yet is the program of an IOC. */
static int isStrippedIoc(const ebpfMonElfFile *file, const ebpfMonElfSymbol *found)
{
    static const char *const texts[] = { "Starting iocInit", "iocRun: %s" };
    Elf64_Shdr table, strings;

    if (isIoc(found) || !ebpfMonElfIsProgram(file) || ebpfMonElfTable(file, SHT_SYMTAB, &table, &strings))
        return 0;
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!ebpfMonElfSearch(file, texts[i], 0))
            return 0;
    return 1;
}

/* How a file is known. */
typedef struct {
    int isStripped;   /* it is an IOC without symbols of its own */
    int isRecognised; /* as ebpfMonBinary has it */
    int isOldNotify;
    int isContradicted; /* as ebpfMonBinary has it */
} Knowledge;

/* The last way: by what the functions do. */
static void recogniseFunctions(const ebpfMonElfFile *file, ebpfMonElfSymbol *found, Knowledge *how)
{
    ebpfMonRecognised by;

    if (ebpfMonRecognise(file->fd, &by))
        return;
    memcpy(found, by.fn, sizeof(by.fn));
    memcpy(found + ebpfMonFnCount, by.var, sizeof(by.var));
    how->isRecognised = 1;
    how->isOldNotify = by.isOldNotify;
}

/* Nonzero: the program itself contradicts the symbols of another file: it says that an address is in the midst of a
 * function. A probe there could be in the midst of an instruction, and end the IOC. Two builds have one build-id if a
 * site sets it to a number of its own (-Wl,--build-id=0x...). */
static int isContradicted(const ebpfMonElfFile *file, const ebpfMonElfSymbol *found)
{
    for (int i = 0; i < NAMES; i++)
        if ((i < ebpfMonFnCount || i >= (int)ebpfMonFnCount + (int)ebpfMonVarCount) && found[i].vaddr &&
            ebpfMonUnwindIsInside(file, found[i].vaddr))
            return 1;
    return 0;
}

/* Finds the names in the file; of a stripped IOC also in the files with its symbols, until there are enough. */
static void findSymbolNames(ebpfMonElfFile *file, const ebpfMonSymbolPlaces *places, ebpfMonElfSymbol *found,
                            Knowledge *how)
{
    ebpfMonSymbolSearch search = { 0 };
    const char *names[NAMES];

    memcpy(names, ebpfMonFnNames, sizeof(ebpfMonFnNames));
    memcpy(names + ebpfMonFnCount, varNames, sizeof(varNames));
    for (int i = 0; i < OLD_NAMES; i++)
        names[ebpfMonFnCount + ebpfMonVarCount + i] = oldNames[i].name;
    names[SCAN_NOW] = "scanIoImmediate";
    ebpfMonElfFind(file, names, NAMES, found);
    how->isStripped = isStrippedIoc(file, found);
    while (how->isStripped && !isIoc(found) && ebpfMonSymbolFileAdd(file, places, &search)) {
        ebpfMonElfFind(file, names, NAMES, found);
        if (!isContradicted(file, found))
            continue;
        how->isContradicted = 1;
        ebpfMonSymbolFileDrop(file);
        ebpfMonElfFind(file, names, NAMES, found);
    }
    if (how->isStripped && !isIoc(found))
        recogniseFunctions(file, found, how);
}

static void fillKnown(ebpfMonElfFile *file, ebpfMonElfSymbol *found, const Knowledge *how, ebpfMonKnown *k)
{
    ebpfMonBinary *b = &k->binary;

    memcpy(b->buildId, file->buildId, sizeof(b->buildId));
    memcpy(k->var, found + ebpfMonFnCount, sizeof(k->var));
    memcpy(k->segment, file->segment, sizeof(k->segment));
    k->nSegments = file->nSegments;
    k->isProgram = file->hasInterp;
    b->isIoc = isIoc(found);
    if (!how->isRecognised)
        dropCopied(file, found, b);
    if (!ebpfMonMachineIsHost(file->machine))
        b->foreign = ebpfMonMachineFind(file->machine)->name;
    b->isNameless = (how->isStripped && !b->isIoc) || (b->isIoc && b->foreign);
    b->isRecognised = how->isRecognised;
    b->isStripped = how->isStripped;
    b->isContradicted = how->isContradicted;
    useOldNames(found, b);
    if (how->isOldNotify)
        b->oldNames |= 1u << ebpfMonFnProcessNotify;
    for (int fn = 0; fn < ebpfMonFnCount; fn++)
        if (b->isIoc || isElsewhere(fn))
            findSite(file, &found[fn], (ebpfMonFn)fn, &b->site[fn]);
    if ((b->isIoc || b->isNameless || found[ebpfMonFnRingPop].vaddr) && !k->var[ebpfMonVarRelease].vaddr)
        findRelease(file, &k->var[ebpfMonVarRelease]);
    b->usesLocks = usesLocks(found);
    /* of a program with a static Base nobody knows */
    b->scansNow = found[SCAN_NOW].isImported || (b->isIoc && ebpfMonElfIsProgram(file));
    if (b->usesLocks && !b->isRecognised) /* without names: the entries are probed */
        b->calls = ebpfMonCallsRead(file);
}

int ebpfMonImageFileRead(int fd, const ebpfMonSymbolPlaces *places, ebpfMonKnown **known)
{
    ebpfMonElfSymbol found[NAMES];
    int over, any = 0, isOfInterest;
    Knowledge how = { 0 };
    ebpfMonElfFile file;

    *known = NULL;
    if (ebpfMonElfOpen(&file, fd))
        return 0;
    findSymbolNames(&file, places, found, &how);
    for (int i = 0; i < NAMES; i++)
        any |= found[i].vaddr != 0;
    isOfInterest = any || usesLocks(found) || found[SCAN_NOW].isImported || how.isStripped;
    if (isOfInterest)
        *known = calloc(1, sizeof(**known));
    if (*known)
        fillKnown(&file, found, &how, *known);
    over = ebpfMonElfIsOver(&file);
    ebpfMonSymbolFilesClose(&file);
    ebpfMonElfClose(&file);
    return isOfInterest && !*known ? ENOMEM : over;
}
