"""tools/gen_python.py: what it writes, and what it has no Python for."""
import importlib.util
import json
import sys
import types
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "gen_python.py"
SPEC = importlib.util.spec_from_file_location("gen_python", TOOL)
gen = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(gen)


def text(schemas, paths=None):
    return gen.Generator({"info": {"version": "1.2.3"}, "paths": paths or {}, "components": {"schemas": schemas}}).text()


def schema(required=(), **properties):
    return {"type": "object", "required": list(required), "properties": properties}


def test_fields_types_and_where_a_schema_is_used(monkeypatch):
    content = {"application/json": {"schema": {"items": {"$ref": "#/components/schemas/A"}}}}
    reply = {"operationId": "getA", "responses": {"200": {"content": content}, "default": {}}}
    out = text({"A": schema(["z"], b={"$ref": "#/components/schemas/B"}, n={"type": ["integer", "string"], "description": "bytes"},
                            z={"type": "array", "items": {"type": "string", "format": "date-time"}}, any={}),
                "B": schema(mood={"type": "string", "enum": ["good", "bad"]}, d={"type": "object", "additionalProperties": {"type": "number"}})},
               {"/v1/a": {"get": reply}})
    assert 'VERSION = "1.2.3"' in out and 'BMood = Literal["good", "bad"]' in out
    a = out[out.index("class A"):out.index("class B")]
    assert a == '''class A(Model):
    """Reply of getA."""

    z: List[datetime]
    b: Optional[B] = None
    n: Optional[Union[int, str]] = None  # bytes
    any: Optional[Any] = None


@dataclass
'''
    assert "mood: Optional[BMood] = None" in out and "d: Optional[Dict[str, float]] = None" in out and '"""Part of A."""' in out
    module = types.ModuleType("heliostat._generated")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(out, "generated", "exec"), vars(module))
    assert module.A.from_dict({"z": ["2026-01-31T12:00:00Z"], "b": {"mood": "good"}}).b == module.B(mood="good")


@pytest.mark.parametrize("schemas, why", [({"A": schema(**{"from": {"type": "string"}})}, "A.from"),
                                          ({"A": schema(b={"enum": ["x"]}), "AB": schema()}, "AB"), ({"List": schema()}, "List"),
                                          ({"A": schema(to_dict={"type": "string"})}, "A.to_dict")])
def test_names_that_python_has_taken_are_refused(schemas, why):
    with pytest.raises(gen.Unsupported, match=why):
        text(schemas)


def test_the_checked_in_file_is_compared(tmp_path, monkeypatch, capsys):
    document = {"info": {"version": "1"}, "paths": {}, "components": {"schemas": {"A": schema()}}}
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    monkeypatch.setattr(gen, "ROOT", tmp_path)
    monkeypatch.setattr(gen, "DOCUMENT", tmp_path / "openapi.json")
    monkeypatch.setattr(gen, "TARGET", tmp_path / "out.py")
    for argv, code in ((["--check"], 1), ([], 0), (["--check"], 0)):
        monkeypatch.setattr(sys, "argv", ["gen_python.py", *argv])
        assert gen.main() == code
    document["components"]["schemas"]["B"] = schema()
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    monkeypatch.setattr(sys, "argv", ["gen_python.py", "--check"])
    assert gen.main() == 1
    assert "out.py is not what openapi.json says: python3 tools/gen_python.py" in capsys.readouterr().out
