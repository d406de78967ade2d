#!../../bin/linux-x86_64/ebpfMon
# Shows a frozen history by the PVs of the monitor (documentation/use/history.md). Anybody may run it, on any host:
#   EBPFMON_REPLAY=frozen-20261128T031005Z.sqlite ../../bin/linux-x86_64/ebpfMon replay.cmd
# Environment: EBPFMON_P, the prefix of the PVs. The default is REPLAY: so that no display mistakes it for the monitor.

< envPaths

dbLoadDatabase "$(TOP)/dbd/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase

epicsEnvSet "EBPFMON_P", "$(EBPFMON_P=REPLAY:)"

var asCheckClientIP 1
asSetFilename "$(TOP)/iocBoot/$(IOC)/ebpfMon.acf"

dbLoadRecords "$(TOP)/db/ebpfMon.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(TOP)/db/ebpfMonReplay.db", "P=$(EBPFMON_P)"
ebpfMonReplay "$(EBPFMON_REPLAY)" "$(EBPFMON_P)"
iocInit
