/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <errlog.h>
#include <sys/stat.h>

#include "common/nameService.h"
#include "export/log/putLog.h"

#define BURST_PVS   4096
#define BURST_IDLE  5.0  /* s; the same as in caPutLog */
#define BURST_TOTAL 30.0 /* s */
#define QUEUE_FULL  "the puts came faster than the logs were written"
#define EXACT_MOST  0x1p53 /* a double has every integer up to this one */

static ebpfMonDestination *getDestination(ebpfMonPutLog *s)
{
    return s->file ? &s->file->out : s->server ? &s->server->out : NULL;
}

static int addLine(ebpfMonPutLog *s, const char *line, size_t len)
{
    if (s->file)
        return ebpfMonLogFileAdd(s->file, line, len, s->now);
    if (s->server)
        return ebpfMonLogServerAdd(s->server, line, len, s->now);
    if (s->conf.kind != ebpfMonPutLogPv)
        return -1;
    if (len >= sizeof(s->last))
        len = sizeof(s->last) - 1;
    memcpy(s->last, line, len);
    s->last[len] = 0;
    s->changed = 1;
    return 0;
}

/* When the log works again after a loss, writes a line that reports it, in the place of the lost lines. It counts also
 * the puts that did not come to the log. */
static void addLossLine(ebpfMonPutLog *s)
{
    ebpfMonDestination *d = getDestination(s);
    size_t len;

    if (!d || !(d->lostNow || s->missed) || d->trouble)
        return;
    len = ebpfMonFormatLoss(&s->formatter, s->conf.format, d->lostNow + s->missed, d->lostNow ? d->why : QUEUE_FULL,
                            s->line, sizeof(s->line));
    d->lostNow = s->missed = 0;
    if (len && addLine(s, s->line, len) == 0)
        s->counts.summaries++;
}

static void addPutLine(void *arg, const ebpfMonPut *put, const ebpfMonBurstInfo *info)
{
    ebpfMonPutLog *s = arg;
    ebpfMonDestination *d = getDestination(s);
    size_t len;

    if (s->conf.kind == ebpfMonPutLogPv && !info && put->at < s->shownAt)
        return; /* the PV shows the newest put */
    if (put->at > s->shownAt)
        s->shownAt = put->at;
    addLossLine(s);
    len = ebpfMonFormatPut(&s->formatter, s->conf.format, put, info, s->line, sizeof(s->line));
    if (!len) { /* no memory; but the destination works */
        ++*(d ? &d->lost : &s->counts.lost);
        return;
    }
    if (addLine(s, s->line, len) == 0 && info)
        s->counts.summaries++;
}

void ebpfMonPutLogConfigure(ebpfMonPutLog *s, const ebpfMonPutLogConf *conf, const ebpfMonFormatLabels *labels,
                            double now)
{
    s->now = now;
    s->formatter.labels = *labels;
    strcpy(s->formatter.labels.prefix, conf->prefix);
    if (s->conf.kind == ebpfMonPutLogNone) {
        memset(&s->counts, 0, sizeof(s->counts));
        if (conf->kind == ebpfMonPutLogFile)
            s->file = ebpfMonLogFileOpen(conf->target, &conf->limits, now);
        else if (conf->kind == ebpfMonPutLogServer)
            s->server = ebpfMonLogServerOpen(conf->target, &conf->addr);
        if (!s->file && !s->server && conf->kind != ebpfMonPutLogPv)
            errlogSevPrintf(errlogMajor, "ebpfMon: log %s: out of memory, nothing is written. Free some memory, then "
                            "begin the log again\n", conf->target);
    }
    s->conf = *conf;
    if (s->file)
        s->file->limits = conf->limits;
    if (s->server)
        s->server->addr = conf->addr;
    if (conf->mode == ebpfMonLogBurst && !s->burst)
        s->burst = ebpfMonBurstNew(BURST_PVS, BURST_IDLE, BURST_TOTAL, addPutLine, s);
    else if (conf->mode != ebpfMonLogBurst)
        ebpfMonPutLogEndBursts(s, now);
}

/* Returns the number of a value. A double cannot tell large 64-bit integers apart, but their texts have all digits, and
 * a long double has at least 64 bits on our machines. */
static long double getExactNumber(double number, const char *text)
{
    if (fabs(number) < EXACT_MOST || text[strspn(text, "-0123456789")])
        return number;
    return strtold(text, NULL);
}

int ebpfMonPutLogIsUnchanged(const ebpfMonPut *put)
{
    size_t len;

    if (!put->hasOld || put->result == ebpfMonPutPending || ebpfMonPutHasFailed(put))
        return 0;
    if (put->isNumber && put->oldIsNumber)
        return getExactNumber(put->number, put->val) == getExactNumber(put->oldNumber, put->old) ||
               strcmp(put->val, put->old) == 0; /* the texts, because NaN is not equal to itself */
    if (strcmp(put->val, put->old) != 0)
        return 0;
    len = strlen(put->val);
    /* only a part of a long array is in the text, and the other part may have changed */
    return len < 3 || strcmp(put->val + len - 3, "...") != 0;
}

void ebpfMonPutLogAddPut(ebpfMonPutLog *s, const ebpfMonPut *put, double now)
{
    s->now = now;
    if ((s->conf.mode == ebpfMonLogChanges && ebpfMonPutLogIsUnchanged(put)) ||
        (s->conf.people && ebpfMonPutIsAutomatic(put)))
        s->counts.skipped++;
    /* those that failed, wait or are unexpected have to be seen, and a summary hides its puts */
    else if (s->burst && !put->unexpected && put->result != ebpfMonPutPending && !ebpfMonPutHasFailed(put))
        s->counts.joined += !ebpfMonBurstAddPut(s->burst, put, now);
    else
        addPutLine(s, put, NULL);
}

void ebpfMonPutLogTick(ebpfMonPutLog *s, double now)
{
    s->now = now;
    if (s->burst)
        ebpfMonBurstTick(s->burst, now);
    if (s->file)
        ebpfMonLogFileTick(s->file, now);
    if (s->server)
        ebpfMonLogServerTick(s->server, now);
    addLossLine(s);
}

void ebpfMonPutLogRotate(ebpfMonPutLog *s, double now)
{
    if (s->file)
        ebpfMonLogFileRotate(s->file, now);
}

void ebpfMonPutLogEndBursts(ebpfMonPutLog *s, double now)
{
    s->now = now;
    if (s->burst)
        ebpfMonBurstFree(s->burst);
    s->burst = NULL;
}

int ebpfMonPutLogIsPending(const ebpfMonPutLog *s)
{
    return s->server && ebpfMonLogServerIsPending(s->server);
}

const ebpfMonPutLogCounts *ebpfMonPutLogGetCounts(ebpfMonPutLog *s)
{
    const ebpfMonDestination *d = getDestination(s);

    if (d) {
        s->counts.lines = d->lines;
        s->counts.lost = d->lost;
        s->counts.trouble = d->trouble;
        memcpy(s->counts.why, d->why, sizeof(s->counts.why));
    }
    return &s->counts;
}

void ebpfMonPutLogClose(ebpfMonPutLog *s, double now, int hasWaited)
{
    ebpfMonPutLogEndBursts(s, now);
    addLossLine(s);
    if (s->file)
        ebpfMonLogFileClose(s->file, now);
    if (s->server)
        ebpfMonLogServerClose(s->server, now, hasWaited);
    ebpfMonPutLogGetCounts(s);
    free(s->file);
    free(s->server);
    s->file = NULL;
    s->server = NULL;
    ebpfMonFormatterFree(&s->formatter);
    s->conf.kind = ebpfMonPutLogNone;
}

/* --- settings --- */

#define META_TOTAL 256  /* bytes, because lines of caPutLog must be short */
#define SERVER_PORT 7011
#define COMMAND_JSON "ebpfMonJsonLog"
#define COMMAND_CAPUT "ebpfMonCaPutLog"

static int isFolder(const char *name)
{
    struct stat st;

    return stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

int ebpfMonPutLogConfSetJson(ebpfMonPutLogConf *c, const char *file, double maxMB, double hours, int keep,
                             ebpfMonLogMode mode)
{
    *c = (ebpfMonPutLogConf){.kind = ebpfMonPutLogFile, .format = ebpfMonFormatJson, .mode = mode & ~ebpfMonLogPeople,
                             .people = mode & ebpfMonLogPeople};
    if (strlen(file) >= sizeof(c->target) - 8) {
        errlogSevPrintf(errlogMajor, COMMAND_JSON ": the name of the file is longer than %d characters: give a "
                        "shorter one\n",
                        (int)sizeof(c->target) - 9);
        return -1;
    }
    if (!(maxMB >= 0) || maxMB > 1e6 || !(hours >= 0) || hours > 1e6 || keep < 0 || keep > 1000) {
        errlogSevPrintf(errlogMajor, COMMAND_JSON ": give maxMB and hours from 0 (never) to 1000000, keep from 0 to "
                        "1000\n");
        return -1;
    }
    if (isFolder(file)) {
        errlogSevPrintf(errlogMajor, COMMAND_JSON ": %s is a folder: give the name of a file\n", file);
        return -1;
    }
    strcpy(c->target, file);
    c->limits.maxBytes = (uint64_t)(maxMB * 1e6);
    c->limits.maxAge = hours * 3600;
    c->limits.keep = (unsigned)keep;
    return 0;
}

int ebpfMonPutLogConfSetCaPutLog(ebpfMonPutLogConf *c, const char *target, int asJson, ebpfMonLogMode mode,
                                 const char *prefix)
{
    ebpfMonNameAnswer address = ebpfMonNameFound;

    *c = (ebpfMonPutLogConf){
        .kind = strchr(target, '/') ? ebpfMonPutLogFile : strcmp(target, "PV") == 0 ? ebpfMonPutLogPv :
                ebpfMonPutLogServer,
        .format = asJson ? ebpfMonFormatCaPutJson : ebpfMonFormatCaPutText, .mode = mode & ~ebpfMonLogPeople,
        .people = mode & ebpfMonLogPeople,
        .limits = {.maxBytes = 100000000, .keep = 10},
    };
    if (strlen(target) >= sizeof(c->target) - 8 || strlen(prefix) >= sizeof(c->prefix)) {
        errlogSevPrintf(errlogMajor, COMMAND_CAPUT ": target or prefix is too long: give at most %d and %d "
                        "characters\n",
                        (int)sizeof(c->target) - 9, (int)sizeof(c->prefix) - 1);
        return -1;
    }
    if (c->kind == ebpfMonPutLogFile && isFolder(target)) {
        errlogSevPrintf(errlogMajor, COMMAND_CAPUT ": %s is a folder: give the name of a file\n", target);
        return -1;
    }
    /* here and not in the log thread, which must not wait for a name server */
    if (c->kind == ebpfMonPutLogServer && c->mode != ebpfMonLogOff)
        address = ebpfMonNameServiceFindAddress(target, SERVER_PORT, EBPFMON_NAMES_SECONDS, &c->addr);
    if (address == ebpfMonNameSilent) {
        errlogSevPrintf(errlogMajor, COMMAND_CAPUT ": the name service did not say within %.0f s which address \"%s\" "
                        "has: give its number\n", EBPFMON_NAMES_SECONDS, target);
        return -1;
    }
    if (address == ebpfMonNameUnknown) {
        errlogSevPrintf(errlogMajor, COMMAND_CAPUT ": no address is known for \"%s\": give HOST, HOST:PORT, a file "
                        "with a \"/\" in its name, or PV; one target for each command\n", target);
        return -1;
    }
    strcpy(c->target, target);
    ebpfMonTextCopy(c->prefix, sizeof(c->prefix), prefix);
    return 0;
}

const char *ebpfMonPutLogConfGetCommand(const ebpfMonPutLogConf *c)
{
    return c->format == ebpfMonFormatJson ? COMMAND_JSON : COMMAND_CAPUT;
}

int ebpfMonPutLogConfIsSame(const ebpfMonPutLogConf *a, const ebpfMonPutLogConf *b)
{
    return a->kind == b->kind && strcmp(a->target, b->target) == 0 &&
           (a->kind == ebpfMonPutLogPv || (a->format == b->format));
}

static int isKeyOfCaPutLog(const char *key)
{
    static const char *const keys[] = {"date", "time", "host", "user", "pv", "new", "new-size", "old", "old-size",
                                       "min", "max", "burst", "writers", "others", "result"};

    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(key, keys[i]) == 0)
            return 1;
    return 0;
}

int ebpfMonFormatLabelsSet(ebpfMonFormatLabels *labels, const char *key, const char *value)
{
    size_t total = strlen(key) + strlen(value);
    unsigned at = EBPFMON_META_MAX;

    if (isKeyOfCaPutLog(key)) {
        errlogSevPrintf(errlogMajor, "ebpfMonLogMetadata: \"%s\" is one of caPutLog's own keys: take another\n", key);
        return -1;
    }
    for (unsigned i = 0; i < labels->metas; i++) {
        if (strcmp(labels->meta[i].key, key) == 0)
            at = i;
        else
            total += strlen(labels->meta[i].key) + strlen(labels->meta[i].value);
    }
    if (!value[0]) {
        if (at < labels->metas) {
            memmove(&labels->meta[at], &labels->meta[at + 1], (labels->metas - at - 1) * sizeof(labels->meta[0]));
            labels->metas--;
        }
        return 0;
    }
    if (strlen(key) >= sizeof(labels->meta[0].key) || strlen(value) >= sizeof(labels->meta[0].value) ||
        total > META_TOTAL || (at == EBPFMON_META_MAX && labels->metas == EBPFMON_META_MAX)) {
        errlogSevPrintf(errlogMajor, "ebpfMonLogMetadata: give at most %d keys of %d characters, with values of %d, "
                        "all together %d\n", EBPFMON_META_MAX, (int)sizeof(labels->meta[0].key) - 1,
                        (int)sizeof(labels->meta[0].value) - 1, META_TOTAL);
        return -1;
    }
    if (at == EBPFMON_META_MAX)
        at = labels->metas++;
    strcpy(labels->meta[at].key, key);
    strcpy(labels->meta[at].value, value);
    return 0;
}
