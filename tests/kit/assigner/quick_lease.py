"""`edgeshare sharemgr cluster --config FILE`, but with a Lease that runs out soon: `python quick_lease.py FILE`."""

import asyncio
import logging
import sys
from pathlib import Path

from edgeshare.config_file import read_config
from sharemgr.cluster.config import Config
from sharemgr.cluster.replica.lease import LeaseTimes
from sharemgr.cluster.replica.replica import Replica
from sharemgr.cluster.service import Service

QUICK = LeaseTimes(lease_s=6, renew_s=5, retry_s=1)

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
config = read_config(Path(sys.argv[1]), Config)
replica = Replica(config, Service(config), QUICK)
asyncio.run(replica.run(ready=lambda url: print(f"edgeshare sharemgr cluster: ready, {url}", flush=True)))
