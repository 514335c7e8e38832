"""The smallest job: say where each task ran."""
import os
import socket

import ray


@ray.remote(scheduling_strategy="SPREAD")
def where(number):
    return f"task {number} on node {os.environ.get('HELIOSTAT_NODE_INDEX', '?')} of {socket.gethostname()}"


ray.init()
print(f"{int(ray.cluster_resources().get('CPU', 0))} CPUs on {len(ray.nodes())} nodes", flush=True)
for line in ray.get([where.remote(n) for n in range(4)]):
    print(line, flush=True)
