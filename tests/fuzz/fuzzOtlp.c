/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is answers of a collector, and texts that configure the export. The kind of a piece says which it is. */
#include "common/text.h"
#include "otlp/otlpConf.h"
#include "otlp/otlpJson.h"
#include "fuzz.h"

#define VARIABLES 8

static const char *const variable[VARIABLES] = {
    "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_RESOURCE_ATTRIBUTES", "OTEL_LOGS_EXPORTER", "OTEL_EXPORTER_ZIPKIN_ENDPOINT", "OTEL_METRIC_EXPORT_INTERVAL",
    "OTEL_SERVICE_NAME",
};

static void checkConf(const ebpfMonOtlpConf *conf)
{
    const char *key = NULL, *value;

    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        while ((key = ebpfMonOtlpPairsGetNext(&conf->target[i].headers, key, &value)))
            FUZZ_CHECK(!strpbrk(key, "\r\n: ") && !strpbrk(value, "\r\n")); /* else a text could add an HTTP header */
    FUZZ_CHECK(memchr(conf->service, 0, sizeof(conf->service)));
}

static void readAnswer(const char *text, size_t length)
{
    char why[120];

    ebpfMonOtlpReadRejected(text, length, why, sizeof(why));
    FUZZ_CHECK(strlen(why) < sizeof(why) && ebpfMonTextIsClean(why)); /* because it is shown on a terminal */
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    static ebpfMonOtlpConf conf;
    ebpfMonOtlpPairs pairs;
    const uint8_t *piece;
    unsigned kind;
    size_t length;
    char why[300];

    while (fuzzNextPiece(&data, &size, &kind, &piece, &length)) {
        char *text = fuzzCopyText(piece, length);

        if (kind < VARIABLES)
            setenv(variable[kind], text, 1);
        else if (kind % 4 == 0)
            readAnswer(text, length);
        else if (kind % 4 == 1)
            ebpfMonOtlpPairsParse(&pairs, text);
        else if (kind % 4 == 2)
            ebpfMonOtlpConfSetZipkin(&conf, text, why, sizeof(why));
        else if (ebpfMonOtlpConfSetCommand(&conf, "http://127.0.0.1:4318", "logs,traces", text, why, sizeof(why)) == 0)
            checkConf(&conf);
        free(text);
    }
    if (ebpfMonOtlpConfReadEnvironment(&conf, why, sizeof(why)) > 0)
        checkConf(&conf);
    for (unsigned i = 0; i < VARIABLES; i++)
        unsetenv(variable[i]);
}
