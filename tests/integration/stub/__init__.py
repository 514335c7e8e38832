"""Makes a Python prefix whose Ray is a stub."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def make_prefix(prefix: Path, version="2.60.0") -> Path:
    """A virtual environment at `prefix` that passes the checks of `helio image add`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    package = next((prefix / "lib").glob("python3*")) / "site-packages" / "ray"
    (package / "dashboard").mkdir(parents=True)
    (package / "__init__.py").write_text(f'__version__ = "{version}"\n__commit__ = "stub"\n')
    (package / "dashboard" / "__init__.py").write_text("")
    (package / "dashboard" / "optional_deps.py").write_text("")
    tools = prefix / "stub"
    shutil.copytree(HERE / "dashboard", tools / "dashboard")
    shutil.copy(HERE / "ray_start.py", tools)
    # A process that does nothing, by the name that the agent looks for.
    shutil.copy(shutil.which("sleep"), tools / "raylet")
    ray = prefix / "bin" / "ray"
    ray.write_text(f'#!/bin/sh\nexec "{prefix}/bin/python" -I -S "{tools}/ray_start.py" "$@"\n')
    os.chmod(ray, 0o755)
    return prefix
