# The monitor IOC of tests/kernels in the emulated machine.
dbLoadDatabase "/m/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase
ebpfMonConfigure 20000 1024 4096 0 4096
dbLoadRecords "/m/ebpfMon.db", "P=M:"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_ENTRY"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_RETURN"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_CALL"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_SYSCALL"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_SYSCALLS"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_PROFILE"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_SWITCH"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_WAIT"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_FILES"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_SOCKETS"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_USDT"
dbLoadRecords "/m/ebpfMonQuery.template", "P=M:,Q=Q_FAULTS"
ebpfMonQueryLoad "/m/queries.json"
ebpfMonFilter "*" "" "" "" "" "trace" "" "" 0
var ebpfMonHangLimit 2
iocInit
