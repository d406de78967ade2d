/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsStdlib.h>
#include <epicsString.h>

#include <curl/curl.h>

#include "common/text.h"
#include "otlp/otlpConf.h"

#define TIMEOUT  10000.0 /* ms; the default of the specification */
#define INTERVAL 10000.0 /* ms; the default of the specification is a minute, which is too long to watch while one
                          * works */
#define GIVE_UP  300.0   /* s */

static const struct {
    const char *name, *variable, *path;
} signals[ebpfMonOtlpSignals] = {
    {"logs", "LOGS", "v1/logs"}, {"metrics", "METRICS", "v1/metrics"}, {"traces", "TRACES", "v1/traces"},
    {"zipkin", "ZIPKIN", NULL},
};

const char *ebpfMonOtlpSignalGetName(ebpfMonOtlpSignal signal)
{
    return signals[signal].name;
}

static int getHexDigit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
           c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Adds one key or value, without the blanks around it. Control characters are refused, because a line feed would begin
 * another header. */
static int addDecoded(ebpfMonOtlpPairs *p, const char *from, const char *end)
{
    while (from < end && isspace((unsigned char)*from))
        from++;
    while (end > from && isspace((unsigned char)end[-1]))
        end--;
    while (from < end) {
        int c = (unsigned char)*from++;

        if (c == '%') {
            if (end - from < 2 || getHexDigit(from[0]) < 0 || getHexDigit(from[1]) < 0)
                return -1;
            c = getHexDigit(from[0]) << 4 | getHexDigit(from[1]);
            from += 2;
        }
        if (ebpfMonTextIsControl((char)c) || p->len + 2 > sizeof(p->text))
            return -1;
        p->text[p->len++] = (char)c;
    }
    p->text[p->len++] = 0;
    return 0;
}

int ebpfMonOtlpPairsParse(ebpfMonOtlpPairs *pairs, const char *text)
{
    memset(pairs, 0, sizeof(*pairs));
    while (*text) {
        size_t len = strcspn(text, ","), blank = strspn(text, " \t");
        const char *equals = memchr(text, '=', len);
        size_t key = pairs->len;

        if (blank < len) { /* nothing between two commas is no error */
            if (!equals || pairs->len + 2 > sizeof(pairs->text) || addDecoded(pairs, text, equals) ||
                !pairs->text[key] || pairs->len + 1 > sizeof(pairs->text) ||
                addDecoded(pairs, equals + 1, text + len)) {
                memset(pairs, 0, sizeof(*pairs));
                return -1;
            }
            pairs->pairs++;
        }
        text += len + (text[len] == ',');
    }
    return 0;
}

const char *ebpfMonOtlpPairsGetNext(const ebpfMonOtlpPairs *pairs, const char *at, const char **value)
{
    const char *key = at ? at + strlen(at) + 1 : pairs->text;

    if (at) /* after its value */
        key += strlen(key) + 1;
    if (key >= pairs->text + pairs->len)
        return NULL;
    *value = key + strlen(key) + 1;
    return key;
}

/* Nonzero: the text can be the name of a header (RFC 9110, 5.6.2). */
static int isToken(const char *name)
{
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("!#$%&'*+-.^_`|~", *name))
            return 0;
    return 1;
}

static int parseHeaders(ebpfMonOtlpPairs *headers, const char *text)
{
    const char *key = NULL, *value;

    if (ebpfMonOtlpPairsParse(headers, text))
        return -1;
    while ((key = ebpfMonOtlpPairsGetNext(headers, key, &value)))
        if (!isToken(key))
            return -1;
    return 0;
}

/* Returns the value of OTEL_…. NULL: it is not set, or empty; the specification treats both alike. */
static const char *getVariable(const char *before, const char *signal, const char *after, char *name, size_t size)
{
    const char *text;

    snprintf(name, size, "OTEL_%s%s%s%s", before, signal, signal[0] ? "_" : "", after);
    text = getenv(name);
    return text && text[0] ? text : NULL;
}

/* Returns the variable of one signal; if there is none, the one of all signals. */
static const char *getExporterVariable(unsigned signal, const char *after, char *name, size_t size)
{
    const char *text = getVariable("EXPORTER_OTLP_", signals[signal].variable, after, name, size);

    return text ? text : getVariable("EXPORTER_OTLP_", "", after, name, size);
}

/* Nonzero: "word" is one of the words of the list. */
static int isListed(const char *list, const char *word)
{
    while (*list) {
        size_t len = strcspn(list, ", ");

        if (len == strlen(word) && epicsStrnCaseCmp(list, word, len) == 0)
            return 1;
        list += len + strspn(list + len, ", ");
    }
    return 0;
}

/* Nonzero: OTEL_LOGS_EXPORTER (and so on) is set and does not name this exporter. */
static int isExcluded(ebpfMonOtlpSignal signal)
{
    char name[80];
    const char *list = getVariable("", signals[signal == ebpfMonOtlpZipkin ? ebpfMonOtlpTraces : signal].variable,
                                "EXPORTER", name, sizeof(name));

    return list && !isListed(list, signal == ebpfMonOtlpZipkin ? "zipkin" : "otlp");
}

/* Reads a time in ms. *seconds gets it in s. 0; or -1, and "why" gets the reason. */
static int parseTime(const char *name, const char *text, double otherwise, double *seconds, char *why, size_t size)
{
    double ms = otherwise;

    if (text && (epicsParseDouble(text, &ms, NULL) || !(ms >= 1 && ms <= 86400e3))) {
        snprintf(why, size, "%s is \"%.40s\": give milliseconds, 1 to 86400000", name, text);
        return -1;
    }
    *seconds = ms / 1000;
    return 0;
}

/* Reads the environment, except the endpoints. */
static int readCommon(ebpfMonOtlpConf *conf, char *why, size_t size)
{
    char name[80];
    const char *text, *key = NULL, *value;

    memset(conf, 0, sizeof(*conf));
    conf->giveUp = GIVE_UP;
    if (gethostname(conf->host, sizeof(conf->host) - 1) || !conf->host[0])
        strcpy(conf->host, "localhost");
    strcpy(conf->service, "ebpfMon");
    text = getVariable("METRIC_EXPORT_INTERVAL", "", "", name, sizeof(name));
    if (parseTime(name, text, INTERVAL, &conf->interval, why, size))
        return -1;
    text = getVariable("RESOURCE_ATTRIBUTES", "", "", name, sizeof(name));
    if (text && ebpfMonOtlpPairsParse(&conf->resource, text)) {
        snprintf(why, size, "%s is not key=value,key=value with %%XX for other characters (up to %d)", name,
                 (int)sizeof(conf->resource.text));
        return -1;
    }
    while ((key = ebpfMonOtlpPairsGetNext(&conf->resource, key, &value)))
        if (strcmp(key, "service.name") == 0)
            snprintf(conf->service, sizeof(conf->service), "%s", value);
    text = getVariable("SERVICE_NAME", "", "", name, sizeof(name));
    if (text)
        snprintf(conf->service, sizeof(conf->service), "%s", text);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        text = i == ebpfMonOtlpZipkin ? getVariable("EXPORTER_ZIPKIN_TIMEOUT", "", "", name, sizeof(name)) :
               getExporterVariable(i, "TIMEOUT", name, sizeof(name));
        if (parseTime(name, text, TIMEOUT, &conf->target[i].timeout, why, size))
            return -1;
    }
    return 0;
}

static int checkUrl(const char *url)
{
    CURLU *u = curl_url();
    char *scheme = NULL;
    int bad = !u || curl_url_set(u, CURLUPART_URL, url, 0) || curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
              (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0);

    curl_free(scheme);
    curl_url_cleanup(u);
    return bad ? -1 : 0;
}

/* Sets the URL of a target. "path": what follows a base URL; NULL: the URL is complete. */
static int setUrl(ebpfMonOtlpTarget *t, const char *url, const char *path, const char *name, char *why, size_t size)
{
    size_t len = strlen(url);
    int slash = path && len && url[len - 1] != '/';

    if (len + (path ? strlen(path) + 1 : 0) >= sizeof(t->url) || checkUrl(url)) {
        snprintf(why, size, "%s is \"%.80s\": give http://HOST:PORT or https://HOST:PORT, as http://127.0.0.1:4318 "
                 "or, for Zipkin, http://127.0.0.1:9411/api/v2/spans", name, url);
        return -1;
    }
    snprintf(t->url, sizeof(t->url), "%s%s%s", url, slash ? "/" : "", path ? path : "");
    return 0;
}

int ebpfMonOtlpConfReadEnvironment(ebpfMonOtlpConf *conf, char *why, size_t size)
{
    char name[80], all[80];
    const char *base = getVariable("EXPORTER_OTLP_", "", "ENDPOINT", all, sizeof(all)), *own, *text;
    const char *zipkin = getVariable("EXPORTER_ZIPKIN_ENDPOINT", "", "", name, sizeof(name));
    const char *disabled = getenv("OTEL_SDK_DISABLED");
    int some = 0;

    memset(conf, 0, sizeof(*conf));
    if (disabled && epicsStrCaseCmp(disabled, "true") == 0)
        return 0;
    some = zipkin != NULL;
    for (unsigned i = 0; i < ebpfMonOtlpZipkin; i++)
        some |= base || getVariable("EXPORTER_OTLP_", signals[i].variable, "ENDPOINT", name, sizeof(name));
    if (!some)
        return 0;
    if (readCommon(conf, why, size))
        return -1;
    some = 0;
    if (zipkin && !isExcluded(ebpfMonOtlpZipkin)) {
        if (setUrl(&conf->target[ebpfMonOtlpZipkin], zipkin, NULL, "OTEL_EXPORTER_ZIPKIN_ENDPOINT", why, size))
            goto bad;
        some = 1;
    }
    for (unsigned i = 0; i < ebpfMonOtlpZipkin; i++) {
        ebpfMonOtlpTarget *t = &conf->target[i];

        if (isExcluded((ebpfMonOtlpSignal)i))
            continue;
        own = getVariable("EXPORTER_OTLP_", signals[i].variable, "ENDPOINT", name, sizeof(name));
        if (!own && !base)
            continue;
        if (setUrl(t, own ? own : base, own ? NULL : signals[i].path, own ? name : all, why, size))
            goto bad;
        text = getExporterVariable(i, "PROTOCOL", name, sizeof(name));
        if (text && strcmp(text, "http/json") != 0) {
            snprintf(why, size, "%s is %.40s: only http/json is spoken here. Set it so, and give the collector's port "
                     "for HTTP (4318)", name, text);
            goto bad;
        }
        text = getExporterVariable(i, "HEADERS", name, sizeof(name));
        if (text && parseHeaders(&t->headers, text)) {
            snprintf(why, size, "%s is not Header=value,Header=value with %%XX for other characters", name);
            goto bad;
        }
        some = 1;
    }
    return some;
bad:
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        conf->target[i].url[0] = 0;
    return -1;
}

int ebpfMonOtlpConfSetCommand(ebpfMonOtlpConf *conf, const char *url, const char *which, const char *headers,
                              char *why, size_t size)
{
    ebpfMonOtlpPairs pairs;

    if (readCommon(conf, why, size))
        return -1;
    if (strcmp(url, "off") == 0)
        return 0;
    if (parseHeaders(&pairs, headers)) {
        snprintf(why, size, "the headers are not Header=value,Header=value with %%XX for other characters");
        return -1;
    }
    while (*which) {
        size_t blank = strspn(which, ", "), len = strcspn(which + blank, ", ");
        unsigned i = 0;

        which += blank;
        if (!len)
            break;
        while (i < ebpfMonOtlpZipkin &&
               (strlen(signals[i].name) != len || epicsStrnCaseCmp(which, signals[i].name, len) != 0))
            i++;
        if (i == ebpfMonOtlpZipkin) {
            snprintf(why, size, "\"%.*s\" is not known: give some of logs,metrics,traces", len > 40 ? 40 : (int)len,
                     which);
            return -1;
        }
        if (setUrl(&conf->target[i], url, signals[i].path, "the address", why, size))
            return -1;
        conf->target[i].headers = pairs;
        which += len;
    }
    return 0;
}

int ebpfMonOtlpConfSetZipkin(ebpfMonOtlpConf *conf, const char *url, char *why, size_t size)
{
    if (readCommon(conf, why, size))
        return -1;
    return strcmp(url, "off") == 0 ? 0 :
           setUrl(&conf->target[ebpfMonOtlpZipkin], url, NULL, "the address", why, size);
}
