#!../../bin/linux-x86_64/ebpfMon
# The monitor IOC. Run it as root in this folder: ../../bin/linux-x86_64/ebpfMon st.cmd
#
# Environment: EBPFMON_P  prefix of the PVs; without it the name of the host and ":EBPF:".
# Site settings: copy this file and change the copy; what is commented out below are examples.

< envPaths

dbLoadDatabase "$(TOP)/dbd/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase

# EBPFMON_HOST, HOSTNAME: set by the registration above where the environment has no HOSTNAME.
epicsEnvSet "EBPFMON_P", "$(EBPFMON_P=$(EBPFMON_HOST):EBPF:)"

# Who may write: the operators of the .acf, from this host only. The server takes a client's address and
# not the name that it claims.
var asCheckClientIP 1
asSetSubstitutions "IOC_USER=$(USER=root)"
asSetFilename "$(TOP)/iocBoot/$(IOC)/ebpfMon.acf"

# Sizes: maxRecords, maxRoots, ringKiB, watchSelf, wireKiB (packets; -1: none are looked at). 0: the default.
#ebpfMonConfigure 500000 16384 16384 0 32768

# Alarm limits and the filter to begin with are macros: see "dbLoadRecords" in ebpfMon.substitutions.
dbLoadRecords "$(TOP)/db/ebpfMon.db", "P=$(EBPFMON_P)"
#dbLoadRecords "$(TOP)/db/ebpfMon.db", "P=$(EBPFMON_P),COST_HIGH=2,FILTER_IOC=vac*,FILTER_LEVEL=2"

# Scalars of single records, for archive and alarm.
#dbLoadRecords "$(TOP)/db/ebpfMonWatch.db", "P=$(EBPFMON_P),REC=RING:CURRENT"
#dbLoadRecords "$(TOP)/db/ebpfMonWatch.db", "P=$(EBPFMON_P),REC=RING:VACUUM:SECTOR12:GAUGE3:PRESSURE,N=G3"

# With autosave: patterns and CHAIN_HIST_ROOT are long strings and come back in pass 1, the rest in pass 0
# (info tags autosaveFields and autosaveFields_pass0).

# What is given here of the filter goes before the FILTER_* PVs, autosaved or not, and sets them.
#ebpfMonFilter "*" "*" "*" "*" "*" counts 10000 1 0.5

# Which puts are expected (documentation/rules.md); the others raise PUT_BAD_* until they are acknowledged.
#ebpfMonRules "$(TOP)/iocBoot/$(IOC)/rules.json"

# Puts are kept (documentation/putLog.md): JSON lines, rotated at 100 MB or a day, 30 files; caPutLog's to a log server.
#ebpfMonJsonLog "/var/log/ebpfMon/puts.json" 100 24 30 all
#ebpfMonCaPutLog "logserver:7011" text changes
# Puts and counts to an OpenTelemetry collector (documentation/otlp.md).
#ebpfMonOtlp "http://127.0.0.1:4318"
#ebpfMonZipkin "http://127.0.0.1:9411/api/v2/spans"

iocInit

echo "ebpfMon serves $(EBPFMON_P)STATE and others. Type: help ebpfMon*"
