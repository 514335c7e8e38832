"""What the generated documents have in common: JSON in, JSON out."""
from __future__ import annotations

import os
import re
import typing
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Type, TypeVar

from ._errors import InvalidArgument

M = TypeVar("M", bound="Model")

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


class Model:
    """Base of every document of the API.

    A field that is None is absent: it is left out on sending, so that the daemon's default holds. Fields of a reply that this version does
    not know are kept and sent back, so that an older SDK works with a newer daemon.
    """

    @classmethod
    def from_dict(cls: Type[M], document: Dict[str, Any]) -> M:
        """The document as JSON has it, made typed. Values that are not of the kind that the schema names are kept as they are.

        Raises TypeError when `document` is no object or lacks a field that the schema requires.
        """
        if not isinstance(document, dict):
            raise TypeError(f"{cls.__name__} is made from an object, not from {type(document).__name__}")
        decoders = _decoders(cls)
        known = {name: decoders[name](value) for name, value in document.items() if name in decoders}
        model = cls(**known)
        # No dataclass field: a field with a default could not stand before required ones.
        model.__dict__["_unknown"] = {name: value for name, value in document.items() if name not in decoders}
        return model

    def to_dict(self) -> Dict[str, Any]:
        """The document as JSON has it, with what from_dict() did not know. Raises InvalidArgument for what JSON cannot say."""
        known = {name: getattr(self, name) for name in _decoders(type(self)) if getattr(self, name) is not None}
        return {**to_json(known), **self.__dict__.get("_unknown", {})}


def to_json(value: Any, path: str = "$") -> Any:
    """`value` as JSON has it: documents as objects, times and paths as text, at any depth.

    Raises InvalidArgument with the path of what JSON cannot say; `path`: of the value itself.
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Model):
        return value.to_dict()
    if isinstance(value, dict):
        return {str(name): to_json(item, f"{path}.{name}") for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise InvalidArgument("invalid_argument", f"JSON has no word for a {type(value).__name__}", path)


def format_time(value: datetime) -> str:
    """As the API writes it; a time without a zone is local time."""
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """A time as the API writes it, with its zone. Raises ValueError."""
    found = _TIME.fullmatch(text)
    if not found:
        raise ValueError(f"not a time such as 2026-01-31T12:00:00Z: {text!r}")
    day, clock, fraction, zone = found.groups()
    # Python before 3.11 reads neither Z nor fractions of other than 3 or 6 digits.
    return datetime.fromisoformat(f"{day}T{clock}.{(fraction or '0')[:6]:0<6}{'+00:00' if zone == 'Z' else zone}")


_DECODERS: Dict[type, Dict[str, Callable[[Any], Any]]] = {}


def _decoders(cls: type) -> Dict[str, Callable[[Any], Any]]:
    """Of each field; made once, because names of types are slow to look up."""
    if cls not in _DECODERS:
        _DECODERS[cls] = {name: _decoder(hint) for name, hint in typing.get_type_hints(cls).items()}
    return _DECODERS[cls]


def _as_it_is(value: Any) -> Any:
    return value


def _decoder(hint: Any) -> Callable[[Any], Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        parts = [part for part in args if part is not type(None)]
        return _decoder(parts[0]) if len(parts) == 1 else _as_it_is
    if origin is list:
        item = _decoder(args[0])
        return lambda value: [item(one) for one in value] if isinstance(value, list) else value
    if origin is dict:
        member = _decoder(args[1])
        return lambda value: {name: member(one) for name, one in value.items()} if isinstance(value, dict) else value
    if isinstance(hint, type) and issubclass(hint, Model):
        return lambda value: hint.from_dict(value) if isinstance(value, dict) else value
    if hint is datetime:
        return _time
    return _as_it_is


def _time(value: Any) -> Any:
    try:
        return parse_time(value) if isinstance(value, str) else value
    except ValueError:
        return value
