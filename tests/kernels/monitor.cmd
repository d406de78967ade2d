# The monitor IOC of tests/kernels in the emulated machine.
dbLoadDatabase "/m/ebpfMon.dbd"
ebpfMon_registerRecordDeviceDriver pdbbase
ebpfMonConfigure 20000 1024 4096 0 4096
dbLoadRecords "/m/ebpfMon.db", "P=M:"
ebpfMonFilter "*" "" "" "" "" "trace" "" "" 0
var ebpfMonHangLimit 2
iocInit
