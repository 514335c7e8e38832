"""heliostat: a managed Ray platform, from Python. The standard library is all that it needs.

    import heliostat

    client = heliostat.Client()
    job = client.submit(entrypoint="python train.py", workers=2, working_dir=".")
    for line in client.follow(job):
        print(line)
    print(client.wait(job).state)
"""
from ._client import TERMINAL_STATES, Client
from ._errors import (AlreadyExists, Conflict, DeadlineExceeded, HeliostatError, InvalidArgument, NotFound, PermissionDenied, PreconditionFailed,
                      ResourceExhausted, Unauthenticated, Unavailable)
from ._models import *  # noqa: F401,F403
from ._models import VERSION as __version__
from ._models import __all__ as _documents
from ._ray import ClusterInfo, get_job_submission_client_cluster_info

__all__ = [
    "AlreadyExists", "Client", "ClusterInfo", "Conflict", "DeadlineExceeded", "HeliostatError", "InvalidArgument", "NotFound", "PermissionDenied",
    "PreconditionFailed", "ResourceExhausted", "TERMINAL_STATES", "Unauthenticated", "Unavailable", "__version__",
    "get_job_submission_client_cluster_info", *_documents,
]
