# What this site wants of ebpfMon: commands of the IOC shell, before iocInit. systemctl restart ebpfmon
# All commands: reference.md, or "help ebpfMon*" at the shell.

# Who may write to the monitor's PVs: users of this host, and other hosts by address. The default: root and ebpfmon.
#ebpfMonOperators "root operator"
#ebpfMonOperatorHosts "10.0.0.5 10.0.0.6"

# What is watched: IOCs, records, fields, hosts, users, level, slow chains (us), sample, budget (%).
#ebpfMonFilter "*" "*" "*" "*" "*" chains 10000 1 1

# What operators set (filter, levels), and unexpected puts that are open, survive a restart.
ebpfMonKeepSettings "$(STATE_DIRECTORY=/var/lib/ebpfmon)/settings"

# Which puts are expected. After a change: systemctl reload ebpfmon
ebpfMonRules "$(EBPFMON_ETC)/rules.json"

# Put log: MB, hours, old files. 0 0 0: the monitor begins no new files, logrotate does, each day, and keeps 30
# (/etc/logrotate.d/ebpfmon: puts*.json and *.log). In a container the image says 100 24 10.
ebpfMonJsonLog "$(LOGS_DIRECTORY=/var/log/ebpfmon)/puts.json" $(EBPFMON_LOG=0 0 0) all
#ebpfMonCaPutLog "logserver:7011" text changes

# A history that the program ebpfMonHistory searches: file, MB, days.
ebpfMonHistoryKeep "$(STATE_DIRECTORY=/var/lib/ebpfmon)/history.sqlite" 1024 30
# The newest 64 MB of it in memory, each put by itself, and packets; written to files here when something happens.
#ebpfMonHistoryRing "$(STATE_DIRECTORY=/var/lib/ebpfmon)" 64

# Puts, counts and traces to an OpenTelemetry collector.
#ebpfMonOtlp "http://127.0.0.1:4318"

# Queries: what they ask is in queries.md; the PVs of one, and its start.
#ebpfMonQueryLoad "$(EBPFMON_DATA)/queries/records.json"
#dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonQuery.template", "P=$(EBPFMON_P),Q=RECORD_TIME"

# PVs of single records, for archive and alarm.
#dbLoadRecords "$(EBPFMON_DATA)/db/ebpfMonWatch.db", "P=$(EBPFMON_P),REC=RING:CURRENT"
