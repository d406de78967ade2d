# The monitor IOC of hold.sh, at its default level.
dbLoadDatabase "/m/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase
ebpfMonConfigure 20000 1024 4096 0 4096
dbLoadRecords "/m/ebpfMon.db", "P=M:"
iocInit
