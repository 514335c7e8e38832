"""From the arguments of submit() to a job as the API takes it."""
from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from ._errors import InvalidArgument
from ._model import to_json
from ._models import JobSpec


def build_spec(spec: Union[JobSpec, Mapping[str, Any], None], entrypoint: Any, workers: Any, env: Any, working_dir: Any,
               py_modules: Optional[Sequence[Any]], fields: Mapping[str, Any]) -> Dict[str, Any]:
    """The job as JSON has it, nothing of it shared with the arguments; those that are not None win over `spec`.

    Only short forms are written out here: whether the job is right is the daemon's to say. Raises InvalidArgument with the field's path.
    """
    if spec is None or isinstance(spec, JobSpec):
        out = {} if spec is None else spec.to_dict()
    elif isinstance(spec, Mapping):
        out = to_json(dict(spec))
    else:
        hint = "; a command goes into entrypoint=" if isinstance(spec, (str, list, tuple)) else ""
        raise InvalidArgument("invalid_argument", f"expected a JobSpec or a dict, not {type(spec).__name__}{hint}", "$")
    given = {"entrypoint": _entrypoint(entrypoint), "workers": _workers(workers), "env": _env(env), **fields}
    out.update(to_json({name: value for name, value in given.items() if value is not None}))
    if isinstance(py_modules, (str, os.PathLike)):
        raise InvalidArgument("invalid_argument", "expected a list of folders, zips or URLs", "$.runtime_env.py_modules")
    code = {name: value for name, value in (("working_dir", working_dir), ("py_modules", py_modules)) if value is not None}
    if code:
        runtime_env = out.get("runtime_env") or {}
        if not isinstance(runtime_env, dict):
            raise InvalidArgument("invalid_argument", f"expected a dict, not {type(runtime_env).__name__}", "$.runtime_env")
        out["runtime_env"] = {**runtime_env, **to_json(code, "$.runtime_env")}
    return out


def build_cluster(name: str, workers: Any, env: Any, idle: Any, fields: Mapping[str, Any]) -> Dict[str, Any]:
    """A long-lived cluster as JSON has it. Raises InvalidArgument with the field's path."""
    given = {**fields, "name": name, "workers": _workers(workers), "env": _env(env)}
    out = to_json({key: value for key, value in given.items() if value is not None})
    if idle is not None:
        out["limits"] = {**(out.get("limits") or {}), "idle": to_json(idle, "$.limits.idle")}
    return out


def _entrypoint(value: Any) -> Any:
    if isinstance(value, str):
        return {"command": value}
    return {"argv": value} if isinstance(value, (list, tuple)) else value


def _workers(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return [{"count": value}] if value else []  # none: the head does the work


def _env(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    for name, text in value.items():
        if not isinstance(text, str):
            raise InvalidArgument("invalid_argument", f"expected a str, not {type(text).__name__}", f"$.env.{name}")
    return [{"name": name, "value": text} for name, text in value.items()]
