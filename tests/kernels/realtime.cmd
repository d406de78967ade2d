# The monitor IOC of realtime.sh.
dbLoadDatabase "/m/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase
ebpfMonConfigure 20000 1024 4096 0 4096
dbLoadRecords "/m/ebpfMon.db", "P=M:"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_STACKS"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_CALL"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_SYSCALL"
ebpfMonQueryLoad "/m/realtime.json"
ebpfMonFilter "*" "" "" "" "" "trace" "" "" 0
iocInit
