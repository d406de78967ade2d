# The IOC that the demo watches: softIoc of EPICS Base, as it is. It knows nothing of the monitor.
dbLoadRecords "machine.db", "P=$(P)"

# A storage ring of twelve sectors: gauges and pumps, read at several rates.
dbLoadTemplate "sector.substitutions", "P=$(P),S=01,SCAN=.1 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=02,SCAN=.1 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=03,SCAN=.2 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=04,SCAN=.2 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=05,SCAN=.5 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=06,SCAN=.5 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=07,SCAN=.5 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=08,SCAN=.5 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=09,SCAN=1 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=10,SCAN=1 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=11,SCAN=2 second"
dbLoadTemplate "sector.substitutions", "P=$(P),S=12,SCAN=2 second"

iocInit
