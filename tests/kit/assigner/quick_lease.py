"""`edgeshare sharemgr cluster --config FILE`, but with a Lease that runs out after so many seconds, and is soon taken
once it is nobody's: `python quick_lease.py FILE SECONDS`."""

import asyncio
import logging
import sys
from pathlib import Path

from edgeshare.config_file import read_config
from sharemgr.cluster.config import Config
from sharemgr.cluster.replica.lease import LeaseTimes
from sharemgr.cluster.replica.replica import Replica
from sharemgr.cluster.service import Service

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
config = read_config(Path(sys.argv[1]), Config)
lease_s = int(sys.argv[2])
replica = Replica(config, Service(config), LeaseTimes(lease_s=lease_s, renew_s=lease_s - 1, retry_s=1))
asyncio.run(replica.run(ready=lambda url: print(f"edgeshare sharemgr cluster: ready, {url}", flush=True)))
