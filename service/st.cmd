# The start-up script of ebpfmon.service. It belongs to the package: your settings go into @confdir@.

epicsEnvSet "EBPFMON_DATA", "@datadir@"
epicsEnvSet "EBPFMON_ETC", "@confdir@"

dbLoadDatabase "$(EBPFMON_DATA)/dbd/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase

# The registration above sets EBPFMON_HOST: the name of this host up to the first dot.
epicsEnvSet "EBPFMON_P", "$(EBPFMON_P=$(EBPFMON_HOST):EBPF:)"

var asCheckClientIP 1
asSetFilename "$(EBPFMON_ETC)/ebpfMon.acf"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMon.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonClients.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonDevice.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonHistory.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonInventory.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonOtlp.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonQueues.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonSubscriptions.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonUses.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonWaits.db", "P=$(EBPFMON_P)$(EBPFMON_MACROS=)"

< "$(EBPFMON_ETC)/site.cmd"

# For: ebpfMon --console
ebpfMonConsole "$(RUNTIME_DIRECTORY=/run/ebpfmon)/console"

iocInit
