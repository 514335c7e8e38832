#!/usr/bin/env python3
"""Writes python/heliostat/_models.py from api/openapi.json. `--check` writes nothing and exits with 1 when the file is not what it would be."""
import argparse
import json
import keyword
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "api" / "openapi.json"
TARGET = ROOT / "python" / "heliostat" / "_models.py"
WIDTH = 150
PREFIX = "#/components/schemas/"

HEAD = '''"""The documents of the API. Written by tools/gen_python.py from api/openapi.json: `./dev gen` writes it again."""
from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, List, Literal, Optional, Union

from ._model import Model

VERSION = {version}
'''
TAKEN = {"Any", "Dict", "List", "Literal", "Model", "Optional", "Union", "VERSION", "dataclass", "datetime", "str", "int", "float", "bool"}
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


class Unsupported(Exception):
    """A schema that this program has no Python for."""


def wrapped(first, words, last, indent="    "):
    """`first`, the words separated by commas, `last`: on one line, or over as many as WIDTH asks for."""
    whole = first + ", ".join(words) + last
    if len(whole) <= WIDTH:
        return [whole]
    lines, line = [first], indent
    for word in words:
        if len(line) + len(word) + 1 > WIDTH:
            lines.append(line.rstrip())
            line = indent
        line += word + ", "
    return [*lines, line.rstrip(), last]


class Generator:
    def __init__(self, document):
        self.document = document
        self.schemas = document["components"]["schemas"]
        self.aliases = {}  # name -> values of an enumeration

    def type_of(self, schema, owner, field):
        """Python's name for the type of a schema; enumerations get an alias named after where they stand."""
        if "$ref" in schema:
            return schema["$ref"][len(PREFIX):]
        if "enum" in schema:
            alias = owner + "".join(part.capitalize() for part in field.split("_"))
            if alias in self.schemas or alias in TAKEN or self.aliases.setdefault(alias, schema["enum"]) != schema["enum"]:
                raise Unsupported(f"{owner}.{field}: the name {alias} is taken")
            return alias
        kind = schema.get("type")
        if kind is None:
            return "Any"
        if isinstance(kind, list):
            return f"Union[{', '.join(SIMPLE[one] for one in kind)}]"
        if kind == "array":
            return f"List[{self.type_of(schema['items'], owner, field)}]"
        if kind == "object":
            return f"Dict[str, {self.type_of(schema.get('additionalProperties', {}), owner, field)}]"
        if schema.get("format") == "date-time":
            return "datetime"
        return SIMPLE[kind]

    def uses(self, name):
        """Where a schema stands, for its class's docstring."""
        def refs(node):
            if isinstance(node, dict):
                if node.get("$ref") == PREFIX + name:
                    return True
                node = node.values()
            return isinstance(node, (list, type({}.values()))) and any(refs(one) for one in node)

        bodies, replies = [], []
        for operations in self.document["paths"].values():
            for operation in operations.values():
                if refs(operation.get("requestBody", {})):
                    bodies.append(operation["operationId"])
                if refs({status: reply for status, reply in operation["responses"].items() if status != "default"}):
                    replies.append(operation["operationId"])
        parts = [other for other, schema in self.schemas.items() if refs(schema)]
        out = [f"{what} {', '.join(sorted(where))}" for what, where in (("body of", bodies), ("reply of", replies), ("part of", parts)) if where]
        text = "; ".join(out) or "what a failed request answers"
        return text[0].upper() + text[1:] + "."

    def model(self, name, schema):
        if name in TAKEN:
            raise Unsupported(f"{name}: the name is taken")
        lines = ["", "", "@dataclass", f"class {name}(Model):", *wrapped('    """', self.uses(name).split(", "), '"""'), ""]
        required = schema.get("required", [])
        # Fields without a default stand first.
        for field, kind in sorted(schema.get("properties", {}).items(), key=lambda item: item[0] not in required):
            if keyword.iskeyword(field) or field.startswith("_") or field in ("from_dict", "to_dict"):
                raise Unsupported(f"{name}.{field}: not a name for a field in Python")
            hint = self.type_of(kind, name, field)
            note = f"  # {kind['description']}" if "description" in kind else ""
            lines.append(f"    {field}: {hint}{note}" if field in required else f"    {field}: Optional[{hint}] = None{note}")
        return lines

    def text(self):
        models = [line for name in sorted(self.schemas) for line in self.model(name, self.schemas[name])]
        aliases = [""] if self.aliases else []
        for alias, values in sorted(self.aliases.items()):
            aliases += wrapped(f"{alias} = Literal[", [json.dumps(value) for value in values], "]")
        names = wrapped("__all__ = [", [json.dumps(name) for name in sorted([*self.schemas, *self.aliases])], "]")
        return "\n".join([HEAD.format(version=json.dumps(self.document["info"]["version"])), *names, *aliases, *models]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    args = parser.parse_args()
    text = Generator(json.loads(DOCUMENT.read_text(encoding="utf-8"))).text()
    name = TARGET.relative_to(ROOT)
    if not args.check:
        TARGET.write_text(text, encoding="utf-8")
        print(f"{name}: {len(text.splitlines())} lines")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        print(f"{name} is what {DOCUMENT.relative_to(ROOT)} says")
        return 0
    print(f"{name} is not what {DOCUMENT.relative_to(ROOT)} says: python3 tools/gen_python.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
