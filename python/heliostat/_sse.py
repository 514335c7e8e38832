"""Server-sent events, as far as the daemon uses them."""
from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterator, List


@dataclass
class Message:
    """One event: its type, and its data as text."""

    type: str
    data: str

    def json(self) -> Any:
        """The data decoded."""
        return json.loads(self.data)


class SseParser:
    """Bytes in, in pieces of any size; messages out. What a broken connection left unfinished is not told."""

    def __init__(self) -> None:
        self._partial = b""
        self._type = ""
        self._data: List[str] = []

    def feed(self, piece: bytes) -> Iterator[Message]:
        """The messages that are complete with this piece."""
        *lines, self._partial = (self._partial + piece).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if not text:
                if self._data:
                    yield Message(self._type or "message", "\n".join(self._data))
                self._type, self._data = "", []
                continue
            name, _, value = text.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "data":
                self._data.append(value)
            elif name == "event":
                self._type = value
