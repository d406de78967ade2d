# Shows a frozen history by the PVs of the monitor (documentation/use/history.md). The program ebpfMonReplay runs it: it
# sets EBPFMON_REPLAY, the file, EBPFMON_P, the prefix of the PVs, and where the other files are.

on error break

dbLoadDatabase "$(EBPFMON_DATA)/dbd/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase

var asCheckClientIP 1
asSetFilename "$(EBPFMON_BOOT)/ebpfMon.acf"

dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMon.db", "P=$(EBPFMON_P)"
dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonReplay.db", "P=$(EBPFMON_P)"
ebpfMonReplay "$(EBPFMON_REPLAY)" "$(EBPFMON_P)"
iocInit
