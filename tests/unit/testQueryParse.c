/* SPDX-License-Identifier: BSD-3-Clause */
/* Query files: refused files with line and reason, and the queries of good files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/text.h"
#include "host/syscallName.h"
#include "query/querySpec.h"

/* A file with one query: its first line, the text in the second one, and the rest. */
#define FILE_OF(text) "{\"queries\": [\n" text "\n]}"
#define PROFILE(text) FILE_OF("{\"name\": \"q\", \"source\": {\"profile\": 99}" text "}")
#define SOURCE(text)  FILE_OF("{\"name\": \"q\", \"source\": " text "}")
#define CALL(text)    FILE_OF("{\"name\": \"q\", \"source\": {\"function\": \"f\", \"when\": \"duration\"}" text "}")
#define ENTRY(text)   FILE_OF("{\"name\": \"q\", \"source\": {\"function\": \"f\"}" text "}")
#define WHERE(text)   ENTRY(", \"where\": [" text "]")
#define TEXT32 "12345678901234567890123456789012"
#define TERM "{\"field\": \"cpu\", \"is\": \"==\", \"value\": 1}"
#define TERMS8 TERM ", " TERM ", " TERM ", " TERM ", " TERM ", " TERM ", " TERM ", " TERM

static const struct { const char *text, *line, *why;
} bad[] = {
    /* the file */
    {"", ":1:", "premature EOF"},
    {"\n\n", ":3:", "premature EOF"},
    {"{", ":1:", "premature EOF"},
    {"{}", ":1:", "\"queries\" is a list of 1 to 128"},
    {"[]", ":1:", "the file is a map"},
    {"12", ":1:", "the file is a map"},
    {"null", ":1:", "the file is a map"},
    {"\"queries\"", ":1:", "the file is a map"},
    {"{\"queries\": []} {}", ":1:", "trailing garbage"},
    {"{\"queries\": [}", ":1:", "unallowed token"},
    {"{\"queries\": [\"\xff\"]}", ":1:", "UTF8"},
    {"{\"queries\": []}", ":1:", "list of 1 to 128"},
    {"{\"queries\": {}}", ":1:", "list of 1 to 128"},
    {"{\"query\": []}", ":1:", "the file cannot have \"query\". Known are: queries"},
    {"{\"queries\": [],\n \"queries\": []}", ":2:", "there twice"},
    {"[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]", ":1:", "nested more than 16"},
    {"{\"queries\": [1e999]}", ":1:", "too large"},
    {"{\"queries\": [{\"name\": \"a\", \"source\": {\"profile\": 9}},\n{\"name\": \"a\", \"source\": {\"profile\": "
     "9}}]}",
     ":2:", "two queries \"a\""},
    {"{\"queries\": [{\"name\": \"a\", \"source\": {\"profile\": 9}},\n7]}", ":2:", "a query is a map"},
    /* the query */
    {FILE_OF("1"), ":2:", "a query is a map { ... } of these: name, title, source"},
    {FILE_OF("[]"), ":2:", "a query is a map"},
    {FILE_OF("{}"), ":2:", "no \"name\""},
    {FILE_OF("{\"name\": \"q\"}"), ":2:", "query q has no \"source\""},
    {FILE_OF("{\"name\": 7}"), ":2:", "\"name\" is a text of 1 to 31"},
    {FILE_OF("{\"name\": \"\"}"), ":2:", "\"name\" is a text of 1 to 31"},
    {FILE_OF("{\"name\": \"" TEXT32 "\"}"), ":2:", "\"name\" is a text of 1 to 31"},
    {FILE_OF("{\"name\": \"a b\"}"), ":2:", "letters, digits and _"},
    {FILE_OF("{\"name\": \"a:b\"}"), ":2:", "letters, digits and _"},
    {FILE_OF("{\"name\": \"a\\u0000b\"}"), ":2:", "cannot be shown"},
    {FILE_OF("{\"name\": \"a\\u001b[2J\"}"), ":2:", "cannot be shown"},
    {FILE_OF("{\"name\": \"\\u202ea\"}"), ":2:", "cannot be shown"},
    {FILE_OF("{\"name\": null}"), ":2:", "\"name\" is a text"},
    {PROFILE(", \"nmae\": 1"),
     ":2:", "a query cannot have \"nmae\". Did you mean \"name\"? Known are: name, title, source, of, keys"},
    {PROFILE(", \"title\": 1"), ":2:", "\"title\" is a text of 1 to 79"},
    {PROFILE(", \"title\": \"" TEXT32 TEXT32 TEXT32 "\""), ":2:", "\"title\" is a text of 1 to 79"},
    {PROFILE(", \"top\": 0"), ":2:", "\"top\" is a whole number from 1 to 100"},
    {PROFILE(", \"top\": 101"), ":2:", "\"top\" is a whole number from 1 to 100"},
    {PROFILE(", \"top\": 1.5"), ":2:", "\"top\" is a whole number"},
    {PROFILE(", \"top\": \"10\""), ":2:", "\"top\" is a whole number"},
    {PROFILE(", \"metrics\": -1"), ":2:", "\"metrics\" is a whole number from 0 to 50"},
    {PROFILE(", \"metrics\": 51"), ":2:", "\"metrics\" is a whole number from 0 to 50"},
    {PROFILE(", \"metrics\": true"), ":2:", "\"metrics\" is a whole number"},
    {PROFILE(", \"top\": 5, \"metrics\": 6"), ":2:", "cannot be larger than \"top\", which is 5"},
    {PROFILE(", \"interval\": 0.1"), ":2:", "\"interval\" is a number from 0.5 to 3600"},
    {PROFILE(", \"interval\": -1"), ":2:", "\"interval\" is a number from 0.5 to 3600"},
    {PROFILE(", \"history\": 10"), ":2:", "this query has none"},
    {CALL(", \"histogram\": \"log2\", \"history\": 0"), ":2:", "\"history\" is a number from 0.5 to 86400"},
    {CALL(", \"histogram\": \"log2\", \"interval\": 5, \"history\": 2"),
     ":2:", "cannot be shorter than \"interval\", which is 5 s"},
    {PROFILE(", \"sample\": 0"), ":2:", "\"sample\" is a whole number from 1"},
    {PROFILE(", \"sample\": 1e7"), ":2:", "\"sample\" is a whole number from 1 to 1000000"},
    {PROFILE(", \"maxKeys\": 0"), ":2:", "\"maxKeys\" is a whole number from 1 to 16384"},
    {PROFILE(", \"maxKeys\": 99999999999999999999"), ":2:", "\"maxKeys\" is a whole number"},
    {PROFILE(", \"budget\": 0"), ":2:", "\"budget\" is a number from 0.01 to 100"},
    {PROFILE(", \"budget\": 101"), ":2:", "\"budget\" is a number from 0.01 to 100"},
    {PROFILE(", \"start\": 1"), ":2:", "\"start\" is true or false"},
    {PROFILE(", \"start\": \"yes\""), ":2:", "\"start\" is true or false"},
    {PROFILE(", \"unit\": \"" TEXT32 "\""), ":2:", "\"unit\" is a text of 1 to 15"},
    {PROFILE(", \"scale\": 0"), ":2:", "\"scale\" is a number from 1e-12"},
    {PROFILE(", \"scale\": -1"), ":2:", "\"scale\" is a number from 1e-12"},
    {PROFILE(", \"sort\": \"name\""),
     ":2:", "\"sort\" is one of \"count\", \"rate\", \"sum\", \"mean\", \"max\", \"last\""},
    {PROFILE(", \"sort\": \"cuont\""), ":2:", "Did you mean \"count\"?"},
    {PROFILE(", \"sort\": 1"), ":2:", "\"sort\" is one of"},
    {PROFILE(", \"sort\": \"sum\""), ":2:", "no \"value\": sort by \"count\" or \"rate\""},
    {PROFILE(", \"stopAfter\": 5"), ":2:", "\"stopAfter\" is a map { ... } of these: seconds, count"},
    {PROFILE(", \"stopAfter\": {\"minutes\": 5}"), ":2:", "\"stopAfter\" cannot have \"minutes\""},
    {PROFILE(", \"stopAfter\": {\"seconds\": 0}"), ":2:", "\"seconds\" is a number from 0.1"},
    {PROFILE(", \"stopAfter\": {\"count\": 0}"), ":2:", "\"count\" is a number from 1"},
    /* the source */
    {SOURCE("1"), ":2:", "a source is one of {\"function\""},
    {SOURCE("{}"), ":2:", "a source is one of {\"function\""},
    {SOURCE("\"profile\""), ":2:", "a source is one of {\"function\""},
    {SOURCE("{\"kprobe\": \"do_exit\"}"), ":2:", "a source is one of {\"function\""},
    {SOURCE("{\"profile\": 0}"), ":2:", "\"profile\" is a whole number from 1 to 1000"},
    {SOURCE("{\"profile\": 1001}"), ":2:", "\"profile\" is a whole number from 1 to 1000"},
    {SOURCE("{\"profile\": \"99\"}"), ":2:", "\"profile\" is a whole number"},
    {SOURCE("{\"profile\": 99, \"when\": \"entry\"}"), ":2:", "this source cannot have \"when\""},
    {SOURCE("{\"syscalls\": \"exit\"}"), ":2:", "\"syscalls\" is one of \"entry\", \"duration\""},
    {SOURCE("{\"syscalls\": true}"), ":2:", "\"syscalls\" is one of"},
    {SOURCE("{\"cpuWait\": false}"), ":2:", "\"cpuWait\" can only be true"},
    {SOURCE("{\"cpuWait\": 1}"), ":2:", "\"cpuWait\" can only be true"},
    {SOURCE("{\"event\": 1}"), ":2:", "\"event\" is a text"},
    {SOURCE("{\"event\": \"faults\"}"), ":2:", "there is no event \"faults\". Known are: page-faults"},
    {SOURCE("{\"event\": \"page-faults\", \"every\": 2}"), ":2:", "cannot have \"every\""},
    {SOURCE("{\"event\": \"cycles\"}"), ":2:", "set \"sample\" to 10000 or more"},
    {SOURCE("{\"event\": \"cache-misses\"}, \"sample\": 9999"), ":2:", "set \"sample\" to 10000 or more"},
    {SOURCE("{\"event\": \"page-faults\"}, \"keys\": [{\"arg\": 1}]"), ":2:", "this source has no arguments"},
    {SOURCE("{\"tracepoint\": \"\"}"), ":2:", "\"tracepoint\" is a text"},
    {SOURCE("{\"tracepoint\": 5}"), ":2:", "\"tracepoint\" is a text"},
    {SOURCE("{\"syscalls\": \"entry\"}, \"value\": \"file\""), ":2:", "a value is a number"},
    {SOURCE("{\"syscalls\": \"entry\"}, \"where\": [{\"field\": \"file\", \"is\": \"==\", \"value\": \"/dev/null\"}]"),
     ":2:", "in \"keys\""},
    {SOURCE("{\"syscalls\": \"entry\"}, \"keys\": [{\"arg\": 1, \"as\": \"socket\"}]"),
     ":2:", "use the field \"file\""},
    {SOURCE("{\"tracepoint\": \"t\"}, \"value\": {\"arg\": 1, \"as\": \"socket\"}"), ":2:", "a value is a number"},
    {SOURCE("{\"tracepoint\": \"t\"}, \"keys\": [{\"arg\": 1, \"as\": \"lock\"}]"), ":2:", "\"lock\" or \"client\""},
    {SOURCE("{\"syscalls\": \"entry\"}, \"keys\": [{\"arg\": 1, \"as\": \"client\"}]"),
     ":2:", "only an argument of a function"},
    {SOURCE("{\"syscalls\": \"entry\"}, \"value\": {\"arg\": 1, \"as\": \"lock\"}"), ":2:", "a value is a number"},
    {WHERE("{\"field\": {\"arg\": 1, \"as\": \"lock\"}, \"is\": \"==\", \"value\": 1}"), ":2:", "name of a lock"},
    {SOURCE("{\"function\": \"\"}"), ":2:", "\"function\" is a text of 1 to 127"},
    {SOURCE("{\"function\": \"f\", \"object\": 1}"), ":2:", "\"object\" is a text"},
    {SOURCE("{\"function\": \"f\", \"when\": \"exit\"}"),
     ":2:", "\"when\" is one of \"entry\", \"return\", \"duration\""},
    {SOURCE("{\"function\": \"f\", \"offset\": -1}"), ":2:", "\"offset\" is a whole number from 0"},
    {SOURCE("{\"function\": \"f\", \"offset\": 4, \"when\": \"return\"}"), ":2:", "only \"when\": \"entry\""},
    {SOURCE("{\"offset\": 4}"), ":2:", "needs \"object\" and \"offset\""},
    {SOURCE("{\"function\": \"f\", \"lib\": \"x\"}"),
     ":2:", "cannot have \"lib\". Did you mean \"object\"? Known are: function, object, offset, when"},
    /* of */
    {PROFILE(", \"of\": \"ioc\""), ":2:", "\"of\" is a map"},
    {PROFILE(", \"of\": {\"iocs\": \"a\"}"),
     ":2:", "\"of\" cannot have \"iocs\". Did you mean \"ioc\"? Known are: ioc, thread, record, host"},
    {PROFILE(", \"of\": {\"ioc\": 1}"), ":2:", "\"ioc\" is a text"},
    {PROFILE(", \"of\": {\"ioc\": \"a\", \"host\": true}"), ":2:", "leave \"ioc\" out"},
    {ENTRY(", \"of\": {\"host\": true}"), ":2:", "functions and USDT probes are probed in IOCs only"},
    {SOURCE("{\"usdt\": \"a:b\"}, \"of\": {\"host\": true}"), ":2:", "USDT probes are probed in IOCs only"},
    {SOURCE("{\"usdt\": \"setjmp\"}"), ":2:", "\"usdt\" is \"PROVIDER:NAME\""},
    {SOURCE("{\"usdt\": \"libc:\"}"), ":2:", "\"usdt\" is \"PROVIDER:NAME\""},
    {SOURCE("{\"usdt\": \":setjmp\"}"), ":2:", "\"usdt\" is \"PROVIDER:NAME\""},
    {SOURCE("{\"usdt\": \"libc:a:b\"}"), ":2:", "\"usdt\" is \"PROVIDER:NAME\""},
    {SOURCE("{\"usdt\": 1}"), ":2:", "\"usdt\" is a text of 1 to 127"},
    {SOURCE("{\"usdt\": \"a:b\", \"when\": \"return\"}"), ":2:", "cannot have \"when\". Known are: usdt, object"},
    {SOURCE("{\"usdt\": \"a:b\"}, \"value\": \"duration\""), ":2:", "this source has no \"duration\""},
    {SOURCE("{\"usdt\": \"a:b\"}, \"keys\": [{\"arg\": 7}]"), ":2:", "\"arg\" is a whole number from 1 to 6"},
    {PROFILE(", \"of\": {\"thread\": \"*scan\"}"), ":2:", "one *, at its end"},
    {PROFILE(", \"of\": {\"thread\": \"sc?n\"}"), ":2:", "one *, at its end"},
    {PROFILE(", \"of\": {\"thread\": 1}"), ":2:", "the name of a thread"},
    {PROFILE(", \"of\": {\"thread\": \"1234567890123456\"}"), ":2:", "at most 15 bytes"},
    {PROFILE(", \"of\": {\"record\": \"A*\"}"), ":2:", "add \"root\""},
    /* keys */
    {PROFILE(", \"keys\": \"ioc\""), ":2:", "\"keys\" is a list of at most 4"},
    {PROFILE(", \"keys\": [\"ioc\", \"ioc\", \"ioc\", \"ioc\", \"ioc\"]"), ":2:", "\"keys\" is a list of at most 4"},
    {PROFILE(", \"keys\": [\"recrod\"]"),
     ":2:", "there is no field \"recrod\". Did you mean \"record\"? Known are: \"ioc\", \"thread\", \"root\""},
    {PROFILE(", \"keys\": [1]"), ":2:", "a field is one of"},
    {PROFILE(", \"keys\": [{}]"), ":2:", "a field is one of"},
    {PROFILE(", \"keys\": [\"return\"]"), ":2:", "this source has no \"return\""},
    {PROFILE(", \"keys\": [\"syscall\"]"), ":2:", "this source has no \"syscall\""},
    {PROFILE(", \"keys\": [\"before\"]"), ":2:", "this source has no \"before\". These have: \"cpuWait\""},
    {PROFILE(", \"keys\": [{\"arg\": 1}]"), ":2:", "this source has no arguments"},
    {ENTRY(", \"keys\": [\"duration\"]"), ":2:", "this source has no \"duration\""},
    {ENTRY(", \"keys\": [{\"return\": \"int32\"}]"), ":2:", "this source returns nothing"},
    {ENTRY(", \"keys\": [{\"arg\": 0}]"), ":2:", "\"arg\" is a whole number from 1 to 4"},
    {ENTRY(", \"keys\": [{\"arg\": 5}]"), ":2:", "\"arg\" is a whole number from 1 to 4"},
    {ENTRY(", \"keys\": [{\"arg\": \"1\"}]"), ":2:", "\"arg\" is a whole number"},
    {ENTRY(", \"keys\": [{\"arg\": 1, \"as\": \"long\"}]"), ":2:", "\"as\" is one of \"uint8\""},
    {ENTRY(", \"keys\": [{\"arg\": 1, \"as\": 4}]"), ":2:", "\"as\" is one of \"uint8\""},
    {ENTRY(", \"keys\": [{\"arg\": 1, \"at\": 4}]"), ":2:", "\"at\" is a list of 1 to 4 offsets"},
    {ENTRY(", \"keys\": [{\"arg\": 1, \"at\": []}]"), ":2:", "\"at\" is a list of 1 to 4 offsets"},
    {ENTRY(", \"keys\": [{\"arg\": 1, \"at\": [1, 2, 3, 4, 5]}]"), ":2:", "\"at\" is a list of 1 to 4 offsets"},
    {ENTRY(", \"keys\": [{\"arg\": 1, \"at\": [1.5]}]"), ":2:", "an offset is a whole number"},
    {ENTRY(", \"keys\": [{\"arg\": 1, \"at\": [99999999]}]"), ":2:", "an offset is a whole number"},
    {ENTRY(", \"keys\": [{\"arg\": 1, \"offset\": 8}]"),
     ":2:", "an argument cannot have \"offset\". Known are: arg, at, as"},
    {CALL(", \"keys\": [{\"return\": \"text\"}]"), ":2:", "a number only"},
    {CALL(", \"keys\": [{\"return\": \"int32\", \"at\": [0]}]"), ":2:", "cannot have \"at\""},
    {SOURCE("{\"tracepoint\": \"t\"}, \"keys\": [{\"arg\": 1, \"at\": [8]}]"), ":2:", "leave out \"at\""},
    {SOURCE("{\"tracepoint\": \"t\"}, \"keys\": [{\"arg\": 1, \"as\": \"text\"}]"),
     ":2:", "a tracepoint is a number, or a socket"},
    /* where */
    {ENTRY(", \"where\": {}"), ":2:", "\"where\" is a list"},
    {WHERE("1"), ":2:", "a condition is a map"},
    {WHERE("{}"), ":2:", "a condition has \"field\", \"is\" and \"value\""},
    {WHERE("{\"field\": \"cpu\", \"is\": \"==\"}"), ":2:", "a condition has"},
    {WHERE("{\"field\": \"cpu\", \"is\": \"=\", \"value\": 1}"), ":2:", "\"is\" is one of \"==\", \"!=\""},
    {WHERE("{\"field\": \"cpu\", \"is\": \"begins\", \"value\": 1}"), ":2:", "\"begins\" is for texts"},
    {WHERE("{\"field\": \"cpu\", \"is\": \"==\", \"value\": \"1\"}"), ":2:", "compared with a whole number"},
    {WHERE("{\"field\": \"cpu\", \"is\": \"==\", \"value\": 1.5}"), ":2:", "compared with a whole number"},
    {WHERE("{\"field\": \"cpu\", \"is\": \">\", \"value\": -1}"), ":2:", "never negative"},
    {WHERE("{\"field\": \"cpu\", \"op\": \">\", \"value\": 1}"), ":2:", "a condition cannot have \"op\""},
    {WHERE("{\"field\": \"thread\", \"is\": \"<\", \"value\": \"a\"}"),
     ":2:", "a text is compared by ==, != or begins"},
    {WHERE("{\"field\": \"thread\", \"is\": \"==\", \"value\": 1}"), ":2:", "compared with a text"},
    {WHERE("{\"field\": \"thread\", \"is\": \"begins\", \"value\": \"\"}"), ":2:", "Write 1 to 15"},
    {WHERE("{\"field\": \"thread\", \"is\": \"==\", \"value\": \"1234567890123456\"}"), ":2:", "at most 15 bytes"},
    {WHERE("{\"field\": {\"arg\": 1, \"as\": \"text\"}, \"is\": \"==\", \"value\": \"" TEXT32 TEXT32 "\"}"),
     ":2:", "at most 39 bytes"},
    {WHERE("{\"field\": \"ioc\", \"is\": \"==\", \"value\": \"a\"}"), ":2:", "IOCs and records are chosen by \"of\""},
    {WHERE("{\"field\": \"root\", \"is\": \"==\", \"value\": \"a\"}"), ":2:", "IOCs and records are chosen by \"of\""},
    {WHERE("{\"any\": {}}"), ":2:", "\"any\" is a list"},
    {WHERE("{\"any\": []}"), ":2:", "\"any\" is a list"},
    {WHERE("{\"any\": [" TERM "], \"all\": 1}"), ":2:", "cannot have \"all\""},
    {WHERE("{\"any\": [{\"any\": [" TERM "]}]}"), ":2:", "a condition cannot have \"any\""},
    {WHERE(TERMS8 ", " TERM), ":2:", "more than 8 conditions"},
    {WHERE("{\"any\": [" TERMS8 ", " TERM "]}"), ":2:", "more than 8 conditions"},
    {ENTRY(", \"of\": {\"thread\": \"a\"}, \"where\": [" TERMS8 "]"), ":2:", "more than 8 conditions"},
    {SOURCE("{\"syscalls\": \"entry\"}, \"where\": [{\"field\": \"syscall\", \"is\": \"==\", \"value\": \"reed\"}]"),
     ":2:", "no system call \"reed\". Did you mean \"read\"?"},
    /* value and histogram */
    {PROFILE(", \"value\": \"duration\""), ":2:", "this source has no \"duration\""},
    {ENTRY(", \"value\": \"thread\""), ":2:", "a value is a number"},
    {ENTRY(", \"value\": \"root\""), ":2:", "a value is a number"},
    {ENTRY(", \"value\": {\"arg\": 1, \"as\": \"text\"}"), ":2:", "a value is a number"},
    {ENTRY(", \"value\": 5"), ":2:", "a field is one of"},
    {ENTRY(", \"histogram\": \"log2\""), ":2:", "a histogram needs a \"value\""},
    {CALL(", \"histogram\": \"log10\""), ":2:", "\"histogram\" is \"log2\" or {\"from\""},
    {CALL(", \"histogram\": 7"), ":2:", "\"histogram\" is \"log2\" or {\"from\""},
    {CALL(", \"histogram\": {\"from\": 5, \"to\": 5}"), ":2:", "Set a larger \"to\""},
    {CALL(", \"histogram\": {\"from\": 5, \"to\": 1}"), ":2:", "Set a larger \"to\""},
    {CALL(", \"histogram\": {\"from\": 0, \"to\": 1e300}"), ":2:", "\"to\" is a number from"},
    {CALL(", \"histogram\": {\"from\": 0, \"to\": 100, \"steps\": 0}"),
     ":2:", "\"steps\" is a whole number from 1 to 62"},
    {CALL(", \"histogram\": {\"from\": 0, \"to\": 100, \"steps\": 63}"),
     ":2:", "\"steps\" is a whole number from 1 to 62"},
    {CALL(", \"histogram\": {\"min\": 0}"), ":2:", "a linear histogram cannot have \"min\""},
    {CALL(", \"histogram\": \"log2\", \"maxKeys\": 16384"), ":2:", "MiB on this host; 32 are allowed"},
    /* events, stacks */
    {PROFILE(", \"events\": 1"), ":2:", "\"events\" is true or false"},
    {PROFILE(", \"events\": \"all\""), ":2:", "\"events\" is true or false"},
    {PROFILE(", \"stacks\": \"user\""), ":2:", "\"stacks\" is true or false"},
    {SOURCE("{\"cpuWait\": true}, \"stacks\": true"), ":2:", "Use the source {\"tracepoint\": \"sched_switch\"}"},
    /* sites */
    {SOURCE("{\"cpuWait\": true}, \"keys\": [\"site\"]"), ":2:", "this source has no \"site\""},
    {PROFILE(", \"value\": \"site\""), ":2:", "a value is a number"},
    {WHERE("{\"field\": \"site\", \"is\": \"==\", \"value\": \"readCard\"}"), ":2:", "in \"keys\""},
    /* puts, authors, clients */
    {PROFILE(", \"keys\": [\"puts\"]"), ":2:", "there is no field \"puts\". Did you mean \"put\"? Known are"},
    {PROFILE(", \"keys\": [\"user\"]"), ":2:", "Did you mean \"author\"? Known are"},
    {SOURCE("{\"cpuWait\": true}, \"keys\": [\"client\"]"), ":2:", "this source has no \"client\""},
    {PROFILE(", \"value\": \"put\""), ":2:", "a value is a number"},
    {PROFILE(", \"value\": \"author\""), ":2:", "a value is a number"},
    {PROFILE(", \"value\": \"client\""), ":2:", "a value is a number"},
    {WHERE("{\"field\": \"put\", \"is\": \"==\", \"value\": \"A:B\"}"), ":2:", "in \"keys\""},
    {WHERE("{\"field\": \"author\", \"is\": \"==\", \"value\": \"operator\"}"), ":2:", "compared with \"user@host\""},
    {WHERE("{\"field\": \"author\", \"is\": \"==\", \"value\": \"@host\"}"), ":2:", "compared with \"user@host\""},
    {WHERE("{\"field\": \"author\", \"is\": \"begins\", \"value\": \"\"}"), ":2:", "compared with \"user@host\""},
    {WHERE("{\"field\": \"author\", \"is\": \"begins\", \"value\": \"1234567890123456\"}"), ":2:", "up to 15 and 19"},
    {WHERE("{\"field\": \"client\", \"is\": \"==\", \"value\": \"a@12345678901234567890\"}"), ":2:", "up to 15 and 19"},
    {WHERE("{\"field\": \"client\", \"is\": \"<\", \"value\": \"a@b\"}"), ":2:", "a text is compared by"},
    {WHERE("{\"field\": \"client\", \"is\": \"==\", \"value\": 5}"), ":2:", "compared with a text"},
    /* doubles */
    {ENTRY(", \"keys\": [{\"arg\": 1, \"as\": \"double\"}]"), ":2:", "It can read one to which an argument points"},
    {ENTRY(", \"keys\": [{\"arg\": 1, \"as\": \"float\"}]"), ":2:", "eBPF cannot read the register"},
    {ENTRY(", \"value\": {\"arg\": 1, \"as\": \"double\"}"), ":2:", "It can read one to which an argument points"},
    {CALL(", \"keys\": [{\"return\": \"double\"}]"), ":2:", "a number only"},
    {CALL(", \"value\": {\"return\": \"float\"}"), ":2:", "a number only"},
    {WHERE("{\"field\": {\"arg\": 1, \"at\": [0], \"as\": \"double\"}, \"is\": \"==\", \"value\": \"1.5\"}"),
     ":2:", "compared with a number"},
    {WHERE("{\"field\": {\"arg\": 1, \"at\": [0], \"as\": \"double\"}, \"is\": \"begins\", \"value\": 1}"),
     ":2:", "for texts"},
    {WHERE("{\"field\": {\"arg\": 1, \"at\": [0], \"as\": \"double\"}, \"is\": \"==\", \"value\": null}"),
     ":2:", "compared with a number"},
    {SOURCE("{\"tracepoint\": \"t\"}, \"keys\": [{\"arg\": 1, \"at\": [0], \"as\": \"double\"}]"),
     ":2:", "a tracepoint is a number, or a socket"},
    /* patterns of functions */
    {SOURCE("{\"function\": \"db*\", \"offset\": 4}"), ":2:", "not with a pattern of functions"},
    {PROFILE(", \"keys\": [\"function\"]"), ":2:", "this source has no \"function\""},
    {SOURCE("{\"function\": \"db*\", \"when\": \"return\"}, \"keys\": [\"function\"]"),
     ":2:", "this source has no \"function\""},
    {ENTRY(", \"value\": \"function\""), ":2:", "a value is a number"},
    {WHERE("{\"field\": \"function\", \"is\": \"==\", \"value\": \"dbPut\"}"), ":2:", "chosen by \"source\""},
    /* distributions over puts */
    {ENTRY(", \"perPut\": 1"), ":2:", "\"perPut\" is one of"},
    {ENTRY(", \"perPut\": \"mean\""), ":2:", "is one of \"count\", \"sum\""},
    {ENTRY(", \"perPut\": \"sum\""), ":2:", "is that of a \"value\", and this query has none"},
    {ENTRY(", \"perPut\": \"count\", \"value\": {\"arg\": 1}"),
     ":2:", "the number of events in a put: leave \"value\" out"},
    {ENTRY(", \"perPut\": \"count\", \"keys\": [\"ioc\", \"cpu\", \"pid\", \"tid\"]"), ":2:", "has three keys at most"},
    {ENTRY(", \"perPut\": \"count\", \"keys\": [\"site\"]"), ":2:", "do not go together"},
    {ENTRY(", \"perPut\": \"count\", \"events\": true"), ":2:", "adds up whole puts"},
    {ENTRY(", \"perPut\": \"count\", \"sample\": 2"), ":2:", "adds up whole puts"},
    {ENTRY(", \"perPut\": \"count\", \"settle\": 0"), ":2:", "\"settle\" is a number from 0.5 to 3600"},
    {ENTRY(", \"settle\": 1"), ":2:", "set \"perPut\", or leave it out"},
    {SOURCE("{\"syscalls\": \"entry\"}, \"of\": {\"host\": true}, \"perPut\": \"count\""),
     ":2:", "puts are known in IOCs only"},
    /* forms that other tools write: Base's JSON parser accepts names without quotes, and texts in single quotes */
    {FILE_OF("kprobe:do_exit { @[comm] = count(); }"), ":2:", "lexical error"},
    {FILE_OF("BPFQL do |q| q.select(\"*\") end"), ":2:", "lexical error"},
    {FILE_OF("{'name': 'q'}"), ":2:", "no \"source\""},
    {FILE_OF("{\"name\": \"q\",}"), ":2:", "no \"source\""},
    {FILE_OF("{\"name\" \"q\"}"), ":2:", "object key and value must be separated"},
    {FILE_OF("{\"name\": NaN}"), ":2:", "a number that is too large"},
    {FILE_OF("{name: \"q\"}"), ":2:", "no \"source\""},
    {PROFILE(", \"from\": \"profile\""),
     ":2:", "a query cannot have \"from\". Did you mean \"source\"? Known are: name, title, source"},
    {PROFILE(", \"select\": [\"thread\"]"), ":2:", "a query cannot have \"select\""},
    {PROFILE(", \"keys\": [\"pids\"]"), ":2:", "there is no field \"pids\""},
    {PROFILE(", \"keys\": {\"pid\": 1}"), ":2:", "\"keys\" is a list of at most 4"},
    {WHERE("{\"field\": \"pid\", \"is\": \"==\", \"value\": \"ioc\"}"), ":2:", "compared with a whole number"},
    {WHERE("{\"field\": \"pid\", \"is\": \"==\", \"value\": -1}"), ":2:", "never negative"},
    {WHERE("{\"field\": \"tid\", \"is\": \"begins\", \"value\": 1}"), ":2:", "for texts"},
    {SOURCE("{\"uprobe\": \"a:b\"}"), ":2:", "write \"function\" for a uprobe"},
    {SOURCE("{\"kretprobe\": \"vfs_read\"}"),
     ":2:", "functions of the kernel cannot be probed: look for a \"tracepoint\""},
    {PROFILE(", \"limit\": 5"), ":2:", "a query cannot have \"limit\". Did you mean \"top\"?"},
    {PROFILE(", \"order_by\": \"count\""), ":2:", "a query cannot have \"order_by\". Did you mean \"sort\"?"},
    {PROFILE(", \"group_by\": \"thread\""), ":2:", "a query cannot have \"group_by\". Did you mean \"keys\"?"},
};

/* Returns the queries, or NULL and "why". Checks that "why" is clean text. */
static ebpfMonQuerySet *parse(const char *text, char *why, size_t size)
{
    ebpfMonQuerySet *set;

    why[0] = 0;
    set = ebpfMonQueryParse("queries.json", text, strlen(text), why, size);
    if ((set != NULL) == (why[0] != 0) || !ebpfMonTextIsClean(why))
        testFail("a set and a reason, or neither, or one that is not clean");
    return set;
}

static void testMistakes(void)
{
    char why[512];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ebpfMonQuerySet *set = parse(bad[i].text, why, sizeof(why));
        size_t place = strlen("queries.json");

        testOk(!set && strncmp(why + place, bad[i].line, strlen(bad[i].line)) == 0 && strstr(why, bad[i].why), "%s",
               why);
        free(set);
    }
}

/* A file that is cut at any place is refused, and no byte behind it is read. */
static void testTorn(const char *text)
{
    size_t length = strlen(text), torn = 0;
    char why[512];

    for (size_t n = 0; n < length; n++) {
        char *copy = malloc(n ? n : 1);
        ebpfMonQuerySet *set;

        memcpy(copy, text, n);
        set = ebpfMonQueryParse("f", copy, n, why, sizeof(why));
        torn += set == NULL;
        free(set);
        free(copy);
    }
    testOk(torn == length, "each torn file is refused: %zu of %zu", torn, length);
}

static void testGood(void)
{
    char why[512];
    const struct ebpfMonQueryPlan *plan;
    ebpfMonQuerySet *set;

    set = parse(
        FILE_OF(
            "{\"name\": \"all\", // comments, too\n\"source\": {\"function\": \"dbPut\", \"object\": \"*Core*\", "
            "\"when\": \"duration\"}, "
            "\"of\": {\"ioc\": \"vac*\", \"thread\": \"scan-*\", \"record\": \"A:*\"}, \"keys\": [\"ioc\", \"thread\", "
            "\"root\", {\"arg\": 2, \"at\": [8, -4], \"as\": \"text\"}], \"where\": [{\"any\": [{\"field\": "
            "\"return\", \"is\": \"<\", \"value\": -1}, {\"field\": \"cpu\", \"is\": \"==\", \"value\": 3}]}], "
            "\"histogram\": {\"from\": 10, \"to\": 30, \"steps\": 2}, \"sort\": \"max\", \"start\": true}"),
        why, sizeof(why));
    if (!set)
        testAbort("%s", why);
    plan = &set->spec[0].order.plan;
    testOk1(set->count == 1 && set->spec[0].start && set->spec[0].sort == ebpfMonQuerySortMax);
    testOk1(set->spec[0].order.source == ebpfMonQueryCall && set->spec[0].function.needReturn &&
            set->spec[0].function.args == EBPFMON_ARG2);
    testOk1(plan->keys == 4 && plan->key[1].at == 8 && plan->key[2].at == 24 && plan->key[3].at == 40);
    testOk1(plan->key[3].steps == 2 && plan->key[3].offset[1] == -4 && plan->key[3].size == EBPFMON_QUERY_TEXT);
    testOk1(plan->terms == 3 && plan->term[0].clause == 8 && plan->term[1].clause == 0 && plan->term[2].clause == 0);
    testOk(plan->term[1].field.what == EBPFMON_QUERY_CPU && plan->term[2].field.what == EBPFMON_QUERY_RETURN,
           "conditions known at the begin of a call come first");
    testOk1(plan->term[0].isLast && !plan->term[1].isLast && plan->term[2].isLast);
    testOk1(memcmp(plan->term[0].text, "scan-", 5) == 0 && ((const uint8_t *)plan->term[0].mask)[4] == 0xff &&
            ((const uint8_t *)plan->term[0].mask)[5] == 0);
    testOk1(plan->term[2].isSigned && (int64_t)plan->term[2].number == -1 && !plan->term[1].isSigned);
    testOk(plan->from == 10000 && plan->step == 10000 && plan->steps == 2,
           "microseconds become the ns that are counted");
    testOk1(strcmp(set->spec[0].unit, "us") == 0 && strcmp(set->spec[0].keyName[3], "arg2") == 0);
    free(set);
}

static void testBuckets(void)
{
    unsigned wrong = 0;

    for (unsigned b = 0; b < EBPFMON_QUERY_BUCKETS - 1; b++) {
        double edge = ebpfMonQueryBucketEdge(b), next = ebpfMonQueryBucketEdge(b + 1);

        wrong += edge >= next || ebpfMonQueryBucket((int64_t)edge) != b || ebpfMonQueryBucket((int64_t)next - 1) != b;
    }
    testOk(wrong == 0, "each bucket begins at its edge");
    testOk1(ebpfMonQueryBucket(-5) == 0 && ebpfMonQueryBucket(INT64_MAX) == EBPFMON_QUERY_BUCKETS - 1);
    testOk1(ebpfMonSyscallNumber("read") == 0 || ebpfMonSyscallNumber("read") == 63);
}

static int64_t fixedOf(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return ebpfMonQueryDoubleFixed(bits);
}

static int64_t orderOf(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return ebpfMonQueryDoubleOrder(bits);
}

/* Compares the arithmetic of a BPF program on doubles with that of the CPU. */
static void testDoubles(void)
{
    static const double some[] = {-INFINITY, -1e300, -5e12, -1234.5678, -1,      -1e-3, -1e-7, -5e-324,
                                  0,         5e-324, 1e-6,  0.1,        0.5,     1,     1.5,   3.14159265358979,
                                  1e6,       8e12,   1e13,  1e300,      INFINITY};
    const unsigned count = sizeof(some) / sizeof(some[0]);
    const double point = ldexp(1, EBPFMON_QUERY_POINT), most = ldexp(1, 62);
    unsigned wrong = 0;

    for (unsigned i = 0; i < count; i++) {
        double want = trunc(some[i] * point);
        float narrow = (float)some[i];
        double wide = narrow;
        uint32_t bits;
        uint64_t widened;

        want = fmax(-most, fmin(most, want));
        wrong += fixedOf(some[i]) != (int64_t)want;
        wrong += i && orderOf(some[i - 1]) >= orderOf(some[i]);
        memcpy(&bits, &narrow, sizeof(bits));
        widened = ebpfMonQueryWidenFloat(bits);
        wrong += isnormal(narrow) && memcmp(&widened, &wide, sizeof(wide)) != 0;
    }
    testOk(!wrong, "doubles keep their order as integers: %u wrong", wrong);
    testOk1(orderOf(-0.0) == orderOf(0) && orderOf(NAN) > orderOf(INFINITY));
    testOk1(sizeof(bad) / sizeof(bad[0]) >= 200);
}

MAIN(testQueryParse)
{
    testPlan(0);
    testMistakes();
    testTorn(WHERE("{\"any\": [" TERM "]}"));
    testGood();
    testBuckets();
    testDoubles();
    return testDone();
}
