"""Addresses that begin with heliostat:// for Ray's own clients.

Ray imports the module that an address's scheme names and asks it where the cluster is: an unmodified JobSubmissionClient("heliostat://default")
and `ray job submit --address heliostat://default` find the daemon and its token by that.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Optional

from ._connect import find
from ._errors import InvalidArgument


@dataclass
class ClusterInfo:
    """What Ray wants to know; the fields are those of its own class of this name."""

    address: str
    cookies: Optional[Dict[str, Any]] = None
    metadata: Optional[Dict[str, Any]] = None
    headers: Optional[Dict[str, Any]] = None


def get_job_submission_client_cluster_info(address: str, create_cluster_if_needed: Optional[bool] = False, cookies: Optional[Dict[str, Any]] = None,
                                           metadata: Optional[Dict[str, Any]] = None, headers: Optional[Dict[str, Any]] = None,
                                           **kwargs: Any) -> ClusterInfo:
    """Called by Ray. address: what follows heliostat://, one of

    - WORKSPACE (empty: default): the daemon that Client() would find, with its token;
    - HOST:PORT or HOST:PORT/WORKSPACE: that daemon, with HELIOSTAT_TOKEN, or the home's token when it is the home's daemon.

    A token among `headers` (Authorization) is left alone. The other arguments are passed on or have no meaning here: a cluster is made for each
    job, never for a client. Raises InvalidArgument for another address, Unavailable when no daemon runs, Unauthenticated without a token.
    """
    host, _, workspace = address.rpartition("/") if "/" in address else (address, "", "") if ":" in address else ("", "", address)
    workspace = workspace or "default"
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", workspace) or (host and not re.fullmatch(r"[^/@]+:\d+", host)):
        raise InvalidArgument("invalid_argument", f"expected heliostat://WORKSPACE or heliostat://HOST:PORT/WORKSPACE, not heliostat://{address}",
                              "address")
    given = next((value for name, value in (headers or {}).items() if name.lower() == "authorization"), None)
    daemon = find(f"http://{host}" if host else None, given)()
    if given is None:
        headers = {**(headers or {}), "Authorization": f"Bearer {daemon.token}"}
    return ClusterInfo(f"{daemon.url}/ray/{workspace}", cookies, metadata, headers)
