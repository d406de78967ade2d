/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/stat.h>

#include <errlog.h>

#include "common/nameService.h"
#include "export/log/putLogConf.h"

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
    *c = (ebpfMonPutLogConf){.kind = ebpfMonPutLogFile, .format = ebpfMonFormatJson, .mode = mode};
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
        .format = asJson ? ebpfMonFormatCaPutJson : ebpfMonFormatCaPutText, .mode = mode,
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
    if (c->kind == ebpfMonPutLogServer && mode != ebpfMonLogOff)
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
