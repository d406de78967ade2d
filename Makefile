# The EPICS way: make, make runtests, make clean, make distclean with EPICS_BASE set in
# configure/RELEASE.local or in the environment. On a bare machine: make demo, make check, make checkLong, make soak,
# make tsan, make bench, make kernels, make clangs, make faults, make matrix, make site, make pictures. For a host: make
# install-host, make deb, make archive, make rpm.

ifneq ($(filter demo pictures check checkLong soak tsan bench kernels clangs faults matrix site setup deb archive rpm install-host,$(MAKECMDGOALS)),)

# These find or build EPICS Base first and then come back here with EPICS_BASE set.
.PHONY: demo pictures check checkLong soak tsan bench kernels clangs faults matrix site setup deb archive rpm install-host
setup:
	@tools/setup.sh
demo:
	@tools/demo.sh
pictures:
	@tools/pictures.sh
check:
	@tools/check.sh
checkLong:
	@tools/check.sh -m long
soak:
	@tools/soak.sh
tsan:
	@tools/tsan.sh
bench:
	@tools/bench.sh
kernels:
	@tools/kernels.sh
clangs:
	@tools/clangs.sh
faults:
	@tools/faults.sh
matrix:
	@tools/matrix.sh
site:
	@tools/site.sh
deb:
	@tools/deb.sh
archive:
	@tools/archive.sh
rpm:
	@tools/archive.sh rpm
install-host:
	@tools/installHost.sh

else

TOP = .
include $(TOP)/configure/CONFIG

DIRS += configure
DIRS += ebpfMonSup
ebpfMonSup_DEPEND_DIRS = configure
DIRS += ebpfMonModules
ebpfMonModules_DEPEND_DIRS = ebpfMonSup
DIRS += ebpfMonApp
ebpfMonApp_DEPEND_DIRS = ebpfMonSup ebpfMonModules
DIRS += ebpfMonHistory
ebpfMonHistory_DEPEND_DIRS = ebpfMonModules
DIRS += ebpfMonTop
ebpfMonTop_DEPEND_DIRS = configure
DIRS += tests
tests_DEPEND_DIRS = ebpfMonSup ebpfMonModules ebpfMonApp
DIRS += iocBoot
iocBoot_DEPEND_DIRS = ebpfMonApp

include $(TOP)/configure/RULES_TOP

ifneq ($(realpath $(INSTALL_LOCATION)),$(realpath $(TOP)))
install: $(INSTALL_LOCATION)/iocsh/ebpfMon.iocsh
$(INSTALL_LOCATION)/iocsh/%: iocsh/%
	mkdir -p $(@D) && cp $< $@
endif

endif
