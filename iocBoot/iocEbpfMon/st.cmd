#!../../bin/linux-x86_64/ebpfMon
# The monitor IOC. Run it as root in this folder: ../../bin/linux-x86_64/ebpfMon st.cmd
#
# Environment: EBPFMON_P, the prefix of the PVs. The default is the name of the host and ":EBPF:".
# For your site copy this file and change the copy. The commands in comments are examples.

< envPaths

dbLoadDatabase "$(TOP)/dbd/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase

# The registration above sets EBPFMON_HOST: the name of this host up to the first dot.
epicsEnvSet "EBPFMON_P", "$(EBPFMON_P=$(EBPFMON_HOST):EBPF:)"

# Who may write to the monitor's PVs: users of this host by their real uid, whatever they claim; and other hosts by
# address. The default: root and the user that runs this IOC; no other host.
#ebpfMonOperators "root operator"
#ebpfMonOperatorHosts "10.0.0.5 10.0.0.6"

# The second check. With asCheckClientIP the logs have the address of a client and not the host name that it claims.
var asCheckClientIP 1
asSetFilename "$(TOP)/iocBoot/$(IOC)/ebpfMon.acf"

# Sizes: maxRecords, maxRoots, ringKiB, watchSelf, wireKiB (packets; -1: reads no packets). 0: the default.
#ebpfMonConfigure 4000000 524288 16384 0 32768

# Macros set the alarm limits (COST_HIGH) and the filter at the start (FILTER_IOC): documentation/use/reference.md.
dbLoadRecords "$(TOP)/db/ebpfMon.db", "P=$(EBPFMON_P)"
#dbLoadRecords "$(TOP)/db/ebpfMon.db", "P=$(EBPFMON_P),COST_HIGH=2,FILTER_IOC=vac*,FILTER_LEVEL=2"
# The PVs of modules.
dbLoadRecords "$(TOP)/db/ebpfMonClients.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(TOP)/db/ebpfMonDevice.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(TOP)/db/ebpfMonHistory.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(TOP)/db/ebpfMonInventory.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(TOP)/db/ebpfMonOtlp.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(TOP)/db/ebpfMonQueues.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(TOP)/db/ebpfMonSubscriptions.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(TOP)/db/ebpfMonUses.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(TOP)/db/ebpfMonWaits.db", "P=$(EBPFMON_P)"

# PVs of single records, for archive and alarm.
#dbLoadRecords "$(TOP)/db/ebpfMonWatch.db", "P=$(EBPFMON_P),REC=RING:CURRENT"
#dbLoadRecords "$(TOP)/db/ebpfMonWatch.db", "P=$(EBPFMON_P),REC=RING:VACUUM:SECTOR12:GAUGE3:PRESSURE,N=G3"

# With autosave: the patterns and CHAIN_HIST_ROOT are long strings, and pass 1 restores them; pass 0 restores the rest
# (info tags autosaveFields and autosaveFields_pass0).

# A filter that this command sets wins over the FILTER_* PVs, autosaved or not, and is written to them.
#ebpfMonFilter "*" "*" "*" "*" "*" counts 10000 1 0.5

# The rules say which puts are expected (documentation/use/rules.md). Any other put sets PUT_BAD_* to MAJOR until
# somebody acknowledges it.
#ebpfMonRules "$(TOP)/iocBoot/$(IOC)/rules.json"

# Put logs (documentation/use/putLog.md): lines of JSON, a new file after 100 MB or 24 h, 30 files; lines in the format
# of caPutLog to a log server.
#ebpfMonJsonLog "/var/log/ebpfmon/puts.json" 100 24 30 all
#ebpfMonCaPutLog "logserver:7011" text changes
# Who used each PV last, kept over restarts in an SQLite file of at most 256 MB; for ebpfMonUnused.
#ebpfMonUsage "/var/lib/ebpfmon/uses.db" 256
# Puts, counts and traces to an OpenTelemetry collector or to Zipkin (documentation/use/otlp.md).
#ebpfMonOtlp "http://127.0.0.1:4318"
#ebpfMonZipkin "http://127.0.0.1:9411/api/v2/spans"
# The records of all watched IOCs to a RecSync server, for Channel Finder.
#ebpfMonRecSync on

# A history that the program ebpfMonHistory searches (documentation/use/history.md): file, MB, days.
#ebpfMonHistoryKeep "/var/lib/ebpfmon/history.sqlite" 1024 30

# Who waits for which port of asyn (documentation/use/device.md):
#ebpfMonDeviceWatch "*"

# Questions of your own (documentation/use/queries.md), and those that come with ebpfMon: load, make PVs, start.
#dbLoadRecords "$(TOP)/db/ebpfMonQuery.template", "P=$(EBPFMON_P),Q=CPU_BY_ROOT"
#ebpfMonQueryLoad "$(TOP)/iocBoot/$(IOC)/queries/cpuByRoot.json"
#ebpfMonQueryStart CPU_BY_ROOT

iocInit

echo "ebpfMon serves $(EBPFMON_P)STATE and others. Type: help ebpfMon*"
