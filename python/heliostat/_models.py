"""The documents of the API. Written by tools/gen_python.py from api/openapi.json: `./dev gen` writes it again."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, List, Literal, Optional, Union

from ._model import Model

VERSION = "0.1.0"

__all__ = [
    "AgentStatus", "AgentStatusReached", "Attempt", "AttemptState", "ClusterInput", "DaemonView", "DashboardLinkInput", "DashboardLinkView",
    "DriverStatus", "DriverStatusPhase", "Entrypoint", "EntrypointResources", "EnvVar", "EventView", "Evidence", "ExecInput", "ExecLine",
    "ExplanationView", "ExplanationViewState", "FileEntry", "FileList", "Flavor", "Gpu", "HeadSpec", "HealthView", "Host", "HostState", "Image",
    "Job", "JobSpec", "JobSpecCompletion", "JobSpecType", "JobState", "JobStop", "Limits", "Mark", "Mount", "NewTokenView", "Node", "NodeDesired",
    "NodeFault", "NodeRole", "NodeState", "NodeUsage", "OomKills", "PackageView", "Placement", "PlacementRole", "PreviewView", "ProblemView",
    "ProcessStatus", "ProcessStatusState", "ProviderFact", "ProviderFactState", "RayClientView", "RayOptions", "Resources", "Retention",
    "RetentionNodes", "RetryPolicy", "ScaleInput", "StreamView", "TokenInput", "TokenInputRole", "TokenView", "TokenViewRole", "Verdict",
    "VerdictChargedTo", "VerdictConfidence", "VersionView", "WorkerGroup",
]

AgentStatusReached = Literal["idle", "joined", "checked", "driving", "drained", "gone"]
AttemptState = Literal["admitted", "starting", "checking", "running", "ending", "succeeded", "failed", "stopped", "preempted", "suspended", "lost"]
DriverStatusPhase = Literal["none", "submitting", "pending", "running", "stopping", "ended"]
ExplanationViewState = Literal["queued", "starting", "running", "restarting", "suspended", "stopping", "succeeded", "failed", "stopped"]
HostState = Literal["ready", "suspect", "draining", "quarantined", "probation", "offline"]
JobSpecCompletion = Literal["driver", "all"]
JobSpecType = Literal["job", "cluster"]
JobState = Literal["queued", "starting", "running", "restarting", "suspended", "stopping", "succeeded", "failed", "stopped"]
JobStop = Literal["none", "user", "deadline", "removed"]
NodeDesired = Literal["idle", "joined", "checked", "driving", "drained", "gone"]
NodeRole = Literal["head", "worker"]
NodeState = Literal["requested", "launched", "connected", "joined", "checked", "serving", "unreachable", "draining", "gone"]
PlacementRole = Literal["head", "worker"]
ProcessStatusState = Literal["none", "running", "exited"]
ProviderFactState = Literal["unknown", "absent", "running", "ended"]
RetentionNodes = Literal["none", "head", "all"]
TokenInputRole = Literal["viewer", "developer", "op", "admin"]
TokenViewRole = Literal["viewer", "developer", "op", "admin"]
VerdictChargedTo = Literal["none", "user", "node", "platform", "unknown"]
VerdictConfidence = Literal["high", "medium", "low"]


@dataclass
class AgentStatus(Model):
    """Part of Node."""

    protocol: Optional[int] = None
    node: Optional[str] = None
    generation: Optional[int] = None
    sequence: Optional[int] = None
    agent_version: Optional[str] = None
    reached: Optional[AgentStatusReached] = None
    step: Optional[str] = None
    ray_start: Optional[ProcessStatus] = None
    gcs_up: Optional[bool] = None
    api_up: Optional[bool] = None
    head_agent_up: Optional[bool] = None
    nodes_alive: Optional[int] = None
    nodes_joined: Optional[List[str]] = None
    driver: Optional[DriverStatus] = None
    idle_since: Optional[datetime] = None
    fault: Optional[NodeFault] = None
    oom: Optional[OomKills] = None
    marks: Optional[List[Mark]] = None
    logs_complete: Optional[bool] = None
    logs_caught_up: Optional[bool] = None
    usage: Optional[NodeUsage] = None


@dataclass
class Attempt(Model):
    """Reply of listAttempts."""

    id: Optional[str] = None
    revision: Optional[int] = None
    job: Optional[str] = None
    number: Optional[int] = None
    state: Optional[AttemptState] = None
    reason: Optional[str] = None
    created: Optional[datetime] = None
    state_since: Optional[datetime] = None
    finished: Optional[datetime] = None
    cluster: Optional[str] = None
    placement: Optional[List[Placement]] = None
    marks: Optional[List[Mark]] = None
    driver: Optional[DriverStatus] = None
    verdict: Optional[Verdict] = None
    stop_asked: Optional[bool] = None
    image: Optional[str] = None
    ray_version: Optional[str] = None
    guest_of: Optional[str] = None


@dataclass
class ClusterInput(Model):
    """Body of createCluster."""

    name: str
    workspace: Optional[str] = None
    queue: Optional[str] = None
    priority: Optional[int] = None
    image: Optional[str] = None
    head: Optional[HeadSpec] = None
    workers: Optional[List[WorkerGroup]] = None
    env: Optional[List[EnvVar]] = None
    mounts: Optional[List[Mount]] = None
    retries: Optional[RetryPolicy] = None
    limits: Optional[Limits] = None
    retention: Optional[Retention] = None
    labels: Optional[Dict[str, str]] = None
    log_limit: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    disk_limit: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB


@dataclass
class DaemonView(Model):
    """Reply of getStatus, stopDaemon."""

    version: Optional[str] = None
    pid: Optional[int] = None
    home: Optional[str] = None
    url: Optional[str] = None
    public_url: Optional[str] = None
    started: Optional[datetime] = None
    uptime: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m
    revision: Optional[int] = None
    agents: Optional[int] = None
    queued: Optional[int] = None
    active: Optional[int] = None
    connections: Optional[int] = None
    memory: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    threads: Optional[int] = None
    logs: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB


@dataclass
class DashboardLinkInput(Model):
    """Body of createDashboardLink."""

    read_only: Optional[bool] = None


@dataclass
class DashboardLinkView(Model):
    """Reply of createDashboardLink."""

    path: Optional[str] = None
    expires: Optional[datetime] = None
    read_only: Optional[bool] = None


@dataclass
class DriverStatus(Model):
    """Part of AgentStatus, Attempt."""

    phase: Optional[DriverStatusPhase] = None
    submission_id: Optional[str] = None
    ray_status: Optional[str] = None
    error_type: Optional[str] = None
    message: Optional[str] = None
    exit_code: Optional[int] = None
    log_node: Optional[str] = None


@dataclass
class Entrypoint(Model):
    """Part of JobSpec."""

    argv: Optional[List[str]] = None
    command: Optional[str] = None
    script: Optional[str] = None
    language: Optional[str] = None
    resources: Optional[EntrypointResources] = None


@dataclass
class EntrypointResources(Model):
    """Part of Entrypoint."""

    num_cpus: Optional[float] = None
    num_gpus: Optional[float] = None
    memory: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    resources: Optional[Dict[str, float]] = None


@dataclass
class EnvVar(Model):
    """Part of ClusterInput, JobSpec."""

    name: str
    value: str
    secret: Optional[bool] = None


@dataclass
class EventView(Model):
    """Reply of listEvents, listJobEvents."""

    revision: Optional[int] = None
    at: Optional[datetime] = None
    actor: Optional[str] = None
    type: Optional[str] = None
    message: Optional[str] = None
    kind: Optional[str] = None
    id: Optional[str] = None
    workspace: Optional[str] = None
    job: Optional[str] = None
    data: Optional[Any] = None


@dataclass
class Evidence(Model):
    """Part of NodeFault, Verdict."""

    source: Optional[str] = None
    text: Optional[str] = None
    at: Optional[datetime] = None


@dataclass
class ExecInput(Model):
    """Body of execInNode."""

    argv: List[str]
    node: Optional[str] = None
    seconds: Optional[int] = None


@dataclass
class ExecLine(Model):
    """Reply of execInNode."""

    data: Optional[str] = None
    exit_code: Optional[int] = None
    error: Optional[str] = None


@dataclass
class ExplanationView(Model):
    """Reply of explainJob."""

    job: Optional[str] = None
    state: Optional[ExplanationViewState] = None
    reason: Optional[str] = None
    position: Optional[int] = None
    ahead: Optional[List[str]] = None
    constraint: Optional[str] = None
    would_help: Optional[str] = None
    lines: Optional[List[str]] = None


@dataclass
class FileEntry(Model):
    """Part of FileList."""

    name: Optional[str] = None
    kind: Optional[str] = None
    size: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    modified: Optional[datetime] = None
    note: Optional[str] = None


@dataclass
class FileList(Model):
    """Reply of readJobFiles."""

    path: Optional[str] = None
    items: Optional[List[FileEntry]] = None


@dataclass
class Flavor(Model):
    """Body of putFlavor; reply of getFlavor, listFlavors, putFlavor."""

    name: str
    resources: Resources
    gpu_model: Optional[str] = None
    virtual_gpus: Optional[bool] = None
    about: Optional[str] = None
    revision: Optional[int] = None
    created: Optional[datetime] = None


@dataclass
class Gpu(Model):
    """Part of Host."""

    index: Optional[int] = None
    model: Optional[str] = None
    memory: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    is_virtual: Optional[bool] = None


@dataclass
class HeadSpec(Model):
    """Part of ClusterInput, JobSpec."""

    flavor: Optional[str] = None
    schedulable: Optional[bool] = None
    object_store_memory: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB


@dataclass
class HealthView(Model):
    """Reply of getHealth."""

    status: Optional[str] = None


@dataclass
class Host(Model):
    """Reply of listHosts."""

    id: Optional[str] = None
    state: Optional[HostState] = None
    reason: Optional[str] = None
    capacity: Optional[Resources] = None
    physical_cpu: Optional[float] = None  # CPUs, to a thousandth
    cpu_overcommit: Optional[float] = None
    gpus: Optional[List[Gpu]] = None
    isolation: Optional[str] = None
    limits: Optional[str] = None
    address: Optional[str] = None
    revision: Optional[int] = None
    created: Optional[datetime] = None


@dataclass
class Image(Model):
    """Body of putImage; reply of getImage, listImages, putImage."""

    name: str
    prefix: str
    python_version: Optional[str] = None
    ray_version: Optional[str] = None
    ray_commit: Optional[str] = None
    allow_no_token: Optional[bool] = None
    revision: Optional[int] = None
    created: Optional[datetime] = None


@dataclass
class Job(Model):
    """Reply of createCluster, deleteCluster, getCluster, getJob, listClusters, listJobs, rerunJob, scaleCluster, stopJob, submitJob, waitForJob."""

    id: Optional[str] = None
    revision: Optional[int] = None
    owner: Optional[str] = None
    spec: Optional[JobSpec] = None
    state: Optional[JobState] = None
    reason: Optional[str] = None
    created: Optional[datetime] = None
    state_since: Optional[datetime] = None
    queued_since: Optional[datetime] = None
    first_admitted: Optional[datetime] = None
    finished: Optional[datetime] = None
    idle_since: Optional[datetime] = None
    growing_since: Optional[datetime] = None
    not_before: Optional[datetime] = None
    stop: Optional[JobStop] = None
    stop_asked: Optional[datetime] = None
    attempts: Optional[int] = None
    current_attempt: Optional[str] = None
    verdict: Optional[Verdict] = None
    exit_code: Optional[int] = None
    ledger: Optional[Dict[str, int]] = None
    rerun_of: Optional[str] = None
    guest_of: Optional[str] = None
    warnings: Optional[List[str]] = None


@dataclass
class JobSpec(Model):
    """Body of previewJob, submitJob; part of Job, PreviewView."""

    entrypoint: Entrypoint
    type: Optional[JobSpecType] = None
    name: Optional[str] = None
    workspace: Optional[str] = None
    queue: Optional[str] = None
    priority: Optional[int] = None
    cluster: Optional[str] = None
    image: Optional[str] = None
    head: Optional[HeadSpec] = None
    workers: Optional[List[WorkerGroup]] = None
    runtime_env: Optional[Dict[str, Any]] = None
    requirements: Optional[List[str]] = None
    env: Optional[List[EnvVar]] = None
    mounts: Optional[List[Mount]] = None
    completion: Optional[JobSpecCompletion] = None
    retries: Optional[RetryPolicy] = None
    limits: Optional[Limits] = None
    retention: Optional[Retention] = None
    ray: Optional[RayOptions] = None
    checks: Optional[str] = None
    labels: Optional[Dict[str, str]] = None
    log_limit: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    disk_limit: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB


@dataclass
class Limits(Model):
    """Part of ClusterInput, JobSpec."""

    pending: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m
    readiness: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m
    run: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m
    total: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m
    stop_grace: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m
    idle: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m


@dataclass
class Mark(Model):
    """Part of AgentStatus, Attempt."""

    name: Optional[str] = None
    at: Optional[datetime] = None


@dataclass
class Mount(Model):
    """Part of ClusterInput, JobSpec."""

    source: str
    target: Optional[str] = None
    read_only: Optional[bool] = None


@dataclass
class NewTokenView(Model):
    """Reply of createToken."""

    token: Optional[TokenView] = None
    secret: Optional[str] = None


@dataclass
class Node(Model):
    """Reply of listJobNodes, listNodes."""

    id: Optional[str] = None
    revision: Optional[int] = None
    cluster: Optional[str] = None
    attempt: Optional[str] = None
    job: Optional[str] = None
    host: Optional[str] = None
    role: Optional[NodeRole] = None
    index: Optional[int] = None
    state: Optional[NodeState] = None
    reason: Optional[str] = None
    created: Optional[datetime] = None
    state_since: Optional[datetime] = None
    placement: Optional[Placement] = None
    generation: Optional[int] = None
    desired: Optional[NodeDesired] = None
    stop_driver: Optional[bool] = None
    added: Optional[bool] = None
    leaving: Optional[bool] = None
    status: Optional[AgentStatus] = None
    fact: Optional[ProviderFact] = None
    port_base: Optional[int] = None
    connected: Optional[bool] = None
    address: Optional[str] = None


@dataclass
class NodeFault(Model):
    """Part of AgentStatus."""

    cause: Optional[str] = None
    message: Optional[str] = None
    exit_code: Optional[int] = None
    evidence: Optional[List[Evidence]] = None
    at: Optional[datetime] = None


@dataclass
class NodeUsage(Model):
    """Part of AgentStatus."""

    cpu: Optional[float] = None
    memory: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    disk: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    processes: Optional[int] = None


@dataclass
class OomKills(Model):
    """Part of AgentStatus."""

    count: Optional[int] = None
    after: Optional[datetime] = None
    by: Optional[datetime] = None


@dataclass
class PackageView(Model):
    """Reply of getPackage, putPackage."""

    sha256: Optional[str] = None


@dataclass
class Placement(Model):
    """Part of Attempt, Node, PreviewView."""

    node: Optional[str] = None
    host: Optional[str] = None
    role: Optional[PlacementRole] = None
    index: Optional[int] = None
    group: Optional[str] = None
    flavor: Optional[str] = None
    resources: Optional[Resources] = None
    gpus: Optional[List[int]] = None


@dataclass
class PreviewView(Model):
    """Reply of previewJob."""

    spec: Optional[JobSpec] = None
    gang: Optional[List[Placement]] = None
    total: Optional[Resources] = None
    warnings: Optional[List[str]] = None
    starts_now: Optional[bool] = None
    would: Optional[str] = None


@dataclass
class ProblemView(Model):
    """What a failed request answers."""

    type: Optional[str] = None
    title: Optional[str] = None
    status: Optional[int] = None
    code: Optional[str] = None
    detail: Optional[str] = None
    path: Optional[str] = None
    args: Optional[Dict[str, str]] = None


@dataclass
class ProcessStatus(Model):
    """Part of AgentStatus."""

    state: Optional[ProcessStatusState] = None
    exit_code: Optional[int] = None


@dataclass
class ProviderFact(Model):
    """Part of Node."""

    state: Optional[ProviderFactState] = None
    detail: Optional[str] = None
    exit_code: Optional[int] = None
    cause: Optional[str] = None
    at: Optional[datetime] = None


@dataclass
class RayClientView(Model):
    """Reply of getRayClient."""

    ray_version: Optional[str] = None
    python_version: Optional[str] = None
    python: Optional[str] = None


@dataclass
class RayOptions(Model):
    """Part of JobSpec."""

    log_to_driver: Optional[bool] = None
    dashboard_full: Optional[bool] = None


@dataclass
class Resources(Model):
    """Part of Flavor, Host, Placement, PreviewView."""

    cpu: Optional[float] = None  # CPUs, to a thousandth
    memory: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    shm: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
    gpus: Optional[int] = None


@dataclass
class Retention(Model):
    """Part of ClusterInput, JobSpec."""

    nodes: Optional[RetentionNodes] = None
    time: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m


@dataclass
class RetryPolicy(Model):
    """Part of ClusterInput, JobSpec."""

    platform: Optional[int] = None
    node: Optional[int] = None
    unknown: Optional[int] = None
    user: Optional[int] = None
    backoff: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m
    max_backoff: Optional[Union[float, str]] = None  # seconds, or text such as 1h30m


@dataclass
class ScaleInput(Model):
    """Body of scaleCluster."""

    count: int
    group: Optional[str] = None


@dataclass
class StreamView(Model):
    """Reply of listStreams."""

    attempt: Optional[str] = None
    node: Optional[str] = None
    stream: Optional[str] = None
    kind: Optional[str] = None
    size: Optional[int] = None
    durable: Optional[int] = None
    first_at: Optional[datetime] = None
    last_at: Optional[datetime] = None
    ended: Optional[bool] = None
    sealed: Optional[bool] = None
    stored: Optional[int] = None


@dataclass
class TokenInput(Model):
    """Body of createToken."""

    name: str
    role: TokenInputRole
    principal: Optional[str] = None
    workspaces: Optional[List[str]] = None
    expires: Optional[datetime] = None


@dataclass
class TokenView(Model):
    """Reply of listTokens; part of NewTokenView."""

    id: Optional[str] = None
    name: Optional[str] = None
    principal: Optional[str] = None
    role: Optional[TokenViewRole] = None
    workspaces: Optional[List[str]] = None
    created: Optional[datetime] = None
    expires: Optional[datetime] = None


@dataclass
class Verdict(Model):
    """Part of Attempt, Job."""

    cause: Optional[str] = None
    charged_to: Optional[VerdictChargedTo] = None
    confidence: Optional[VerdictConfidence] = None
    message: Optional[str] = None
    stage: Optional[str] = None
    node: Optional[str] = None
    exit_code: Optional[int] = None
    evidence: Optional[List[Evidence]] = None
    decision: Optional[str] = None


@dataclass
class VersionView(Model):
    """Reply of getVersion."""

    name: Optional[str] = None
    version: Optional[str] = None
    api: Optional[str] = None
    agent_protocol: Optional[int] = None


@dataclass
class WorkerGroup(Model):
    """Part of ClusterInput, JobSpec."""

    count: int
    name: Optional[str] = None
    flavor: Optional[str] = None
    labels: Optional[Dict[str, str]] = None
    resources: Optional[Dict[str, float]] = None
    object_store_memory: Optional[Union[int, str]] = None  # bytes, or text such as 4GiB
