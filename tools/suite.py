#!/usr/bin/env python3
"""Runs the test suite, or the parts whose name contains FILTER. Called by `./dev test`, which installs what is needed.

The last line of output is always "N passed, N failed, N skipped"; the exit status is 0 only when nothing failed.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAIL_LINES = 60
UNIT_TIMEOUT_S = 300
THREADED = ("rt", "net", "store", "control")  # what runs under the thread sanitizer too
SIM_SEEDS = 300
FUZZ_S = 60  # of each fuzzer
UNIT_BUDGET = "30:1200"  # CPU-seconds and MB to compile one unit
REAL_CLUSTERS = ("test_real", "test_cluster", "test_ray_client")  # integration tests whose time goes into clusters of real Ray
PROGRAMS = ("heliostatd", "helio", "helio-agent")


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = field(default_factory=list)  # one line each: what failed, why something was skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.notes += other.notes


def fail(note):
    return Tally(failed=1, notes=[note])


def say(text):
    print(text, flush=True)


def tail(text):
    lines = text.strip().splitlines()
    cut = len(lines) - TAIL_LINES
    return "\n".join(([f"... ({cut} lines before)"] if cut > 0 else []) + lines[-TAIL_LINES:])


def run(argv, timeout=None, env=None):
    """Exit status and output together. 124 when it took too long."""
    try:
        done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              env={**os.environ, **(env or {})}, errors="replace", text=True)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
        return 124, (out if isinstance(out, str) else out.decode(errors="replace")) + f"\ntook longer than {timeout}s"


class Suite:
    def __init__(self, args):
        self.args = args
        self.fuzzing = []
        self.results = ROOT / "build" / "results"
        self.results.mkdir(parents=True, exist_ok=True)

    # --- building -----------------------------------------------------------------------------------------------------------------
    def build(self, preset, targets):
        say(f"-- build {preset}: {' '.join(targets)}")
        return run(["./dev", "build", preset, "-k", "0", *targets], env={"HELIO_UNIT_BUDGET": UNIT_BUDGET})

    def unit_programs(self):
        """Names of the folders and programs that have unit tests."""
        code, out = run(["./dev", "build", "asan", "build.ninja"])
        if code == 0:
            code, out = run(["ctest", "--test-dir", "build/asan", "--show-only=json-v1"])
        if code != 0:
            raise SystemExit(f"{tail(out)}\ncannot configure the build")
        return sorted(test["name"] for test in json.loads(out[out.index("{"):])["tests"])

    def path_of(self, preset, program):
        found = [p for p in (ROOT / "build" / preset).rglob(f"{program}_test") if p.is_file() and os.access(p, os.X_OK)]
        return found[0] if found else None

    # --- parts --------------------------------------------------------------------------------------------------------------------
    def lint(self, name):
        commands = {
            "format": "git ls-files --cached --others --exclude-standard 'src/*.h' 'src/*.cpp' | xargs -r ls -d 2>/dev/null"
                      " | xargs -r clang-format-19 --dry-run --Werror",
            "layers": "python3 tools/check_layers.py",
            "sizes": "python3 tools/check_sizes.py",
            "words": "python3 tools/check_words.py",
            "python": "python3 tools/gen_python.py --check",
        }
        return self.check(f"lint.{name}", ["bash", "-c", commands[name]])

    def check(self, name, argv):
        code, out = run(argv)
        if code == 0:
            return Tally(passed=1)
        say(tail(out))
        return fail(name)

    def gtest(self, preset, program):
        path = self.path_of(preset, program)
        if path is None:
            return fail(f"{preset}.{program}: not built"), ""
        report = self.results / f"{preset}-{program}.json"
        report.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="helio-unit-") as folder:
            code, out = run([str(path)], UNIT_TIMEOUT_S, {
                "GTEST_OUTPUT": f"json:{report}", "TMPDIR": folder, "HELIOSTAT_SOURCE": str(ROOT),
                "ASAN_OPTIONS": "detect_stack_use_after_return=1", "UBSAN_OPTIONS": "print_stacktrace=1",
                "TSAN_OPTIONS": "halt_on_error=1 second_deadlock_stack=1",
                "ASAN_SYMBOLIZER_PATH": "/usr/bin/llvm-symbolizer-19", "TSAN_SYMBOLIZER_PATH": "/usr/bin/llvm-symbolizer-19"})
        tally = Tally()
        if report.exists():
            for suite in json.loads(report.read_text())["testsuites"]:
                for case in suite["testsuite"]:
                    label = f"{preset}.{program}: {suite['name']}.{case['name']}"
                    if case.get("failures"):
                        tally.add(fail(label))
                    elif case.get("result") == "SKIPPED" or case.get("status") == "NOTRUN":
                        tally.skipped += 1
                        tally.notes.append(f"skipped {label}")
                    else:
                        tally.passed += 1
        if code != 0 and tally.failed == 0:
            tally.add(fail(f"{preset}.{program}: ended with {code}"))
        return tally, out

    def gtests(self, preset, programs):
        code, out = self.build(preset, [f"{p}_test" for p in programs])
        if code != 0:
            say(tail(out))
        total = Tally()
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for program, (tally, text) in zip(programs, pool.map(lambda p: self.gtest(preset, p), programs)):
                if tally.failed:
                    say(f"-- {preset}.{program}\n{tail(text)}")
                total.add(tally)
        return total

    def programs(self):
        wanted = [p for p in (*PROGRAMS, "helio-sim") if self.has_target("release", p)]
        code, out = self.build("release", wanted)
        if code == 0:
            return Tally(passed=1)
        say(tail(out))
        return fail("build.release")

    def has_target(self, preset, target):
        code, _ = run(["./dev", "build", preset, "-n", target])
        return code == 0

    def sim(self):
        if not self.has_target("release", "helio-sim"):
            return Tally(skipped=1, notes=["skipped sim: there is no helio-sim"])
        code, out = run(["build/release/bin/helio-sim", "--count", str(SIM_SEEDS)], 600)
        if code == 0:
            return Tally(passed=1)
        say(tail(out))
        return fail("sim")

    def fuzz(self, name, folder):
        """One fuzzer from the corpus that is kept; what it finds that is new goes to build/fuzz."""
        new, findings = ROOT / "build/fuzz" / name, self.results / f"fuzz-{name}-"
        new.mkdir(parents=True, exist_ok=True)
        code, out = run(["nice", "-n", "19", str(ROOT / f"build/asan/bin/fuzz-{name}"), f"-max_total_time={FUZZ_S}", "-timeout=60",
                         f"-artifact_prefix={findings}", str(new), str(folder)], FUZZ_S + 240)
        if code == 0:
            return Tally(passed=1)
        # A long trace follows what the program itself said.
        say("\n".join(line for line in out.splitlines() if "does not hold" in line or "ERROR" in line))
        say(tail(out))
        return fail(f"fuzz.{name}")

    def start_fuzzers(self, names):
        """They take what the parts that follow leave of the machine: those wait for Ray most of the time."""
        code, out = self.build("asan", [f"fuzz-{name}" for name in names])
        if code != 0:
            say(tail(out))
            return fail("fuzz: not built")
        pool = concurrent.futures.ThreadPoolExecutor(1)
        self.fuzzing = [pool.submit(self.fuzz, name, ROOT / "tests/fuzz/corpus" / name) for name in names]
        return Tally()

    def end_fuzzers(self):
        total = Tally()
        for running in self.fuzzing:
            total.add(running.result())
        return total

    def pytest_command(self, name, paths):
        """Started, its output going to a file: (process, report, log)."""
        report, log = self.results / f"{name}.xml", self.results / f"{name}.log"
        report.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x" if self.args.stop else "-ra", "-q", f"--junitxml={report}",
                *map(str, paths)]
        env = {**os.environ, "HELIOSTAT_BIN": str(ROOT / "build/release/bin"), "HELIOSTAT_IMAGES": str(Path(self.args.cache) / "images")}
        with open(log, "wb") as out:
            return subprocess.Popen(argv, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT), report, log

    def pytest(self, name, *lanes):
        """Each lane is a list of files or folders. Lanes run side by side: one that waits for Ray leaves the machine to the other."""
        running = [self.pytest_command(name if len(lanes) == 1 else f"{name}-{i}", lane) for i, lane in enumerate(lanes, 1)]
        tally = Tally()
        for process, report, log in running:
            code = process.wait()
            say(log.read_text(errors="replace").rstrip())
            if code != 5:  # nothing was collected
                tally.add(self.read_report(name, report, code))
        return tally

    @staticmethod
    def read_report(name, report, code):
        tally = Tally()
        if report.exists():
            for case in xml.parse(report).getroot().iter("testcase"):
                label = f"{name}: {case.get('classname')}.{case.get('name')}"
                if case.find("failure") is not None or case.find("error") is not None:
                    tally.add(fail(label))
                elif case.find("skipped") is not None:
                    tally.skipped += 1
                    tally.notes.append(f"skipped {label}: {case.find('skipped').get('message')}")
                else:
                    tally.passed += 1
        if code != 0 and tally.failed == 0:
            tally.add(fail(f"{name}: pytest ended with {code}"))
        return tally

    def integration(self):
        """Tests of real clusters wait for Ray most of the time; those of the stand-in go on meanwhile."""
        files = sorted((ROOT / "tests/integration").glob("test_*.py"))
        real = [f for f in files if f.stem in REAL_CLUSTERS]
        return self.pytest("integration", real, [f for f in files if f not in real])

    # --- the whole ----------------------------------------------------------------------------------------------------------------
    def plan(self):
        """(name, function) of every part, in the order in which they run."""
        wanted = self.args.filter
        parts = [(f"lint.{n}", lambda n=n: self.lint(n)) for n in ("format", "layers", "sizes", "words", "python")]
        parts.append(("python", lambda: self.pytest("python", [ROOT / "python" / "tests"])))
        units = self.unit_programs()
        chosen = [u for u in units if wanted in f"unit.{u}"]
        threaded = [u for u in THREADED if u in units and wanted in f"tsan.{u}"]
        if self.args.list:
            parts += [(f"unit.{u}", None) for u in chosen] + [(f"tsan.{u}", None) for u in threaded]
        else:
            if chosen:
                parts.append((f"unit.{','.join(chosen)}", lambda: self.gtests("asan", chosen)))
            if threaded:
                parts.append((f"tsan.{','.join(threaded)}", lambda: self.gtests("tsan", threaded)))
        parts.append(("build.release", self.programs))
        parts.append(("floor", lambda: self.check("floor", [sys.executable, "tools/check_floor.py"])))
        parts.append(("sim", self.sim))
        fuzzed = [n for n in sorted(path.name for path in (ROOT / "tests/fuzz/corpus").iterdir()) if wanted in f"fuzz.{n}"]
        if self.args.list:
            parts += [(f"fuzz.{n}", None) for n in fuzzed]
        elif fuzzed:
            parts.append(("fuzz.start", lambda: self.start_fuzzers(fuzzed)))
        if wanted:
            for file in sorted((ROOT / "tests/integration").glob("test_*.py")):
                parts.append((f"integration.{file.stem}", lambda f=file: self.pytest(f"integration.{f.stem}", [f])))
        else:
            parts.append(("integration", self.integration))
        if fuzzed and not self.args.list:
            parts.append((f"fuzz.{','.join(fuzzed)}", self.end_fuzzers))
        parts = [(n, f) for n, f in parts if wanted in n or n.startswith(("unit.", "tsan.", "fuzz."))]
        needs_programs = any(n.startswith("integration.") or n in ("sim", "floor") for n, _ in parts)
        if wanted and needs_programs and not any(n == "build.release" for n, _ in parts):
            parts.insert(0, ("build.release", self.programs))
        return parts

    def run(self):
        total = Tally()
        started = time.monotonic()
        parts = self.plan()
        if self.args.list:
            print("\n".join(name for name, _ in parts))
            return 0
        if not parts:
            total.add(fail(f"no part's name contains '{self.args.filter}'; `./dev test --list` shows them"))
        times = []
        for name, part in parts:
            begin = time.monotonic()
            say(f"== {name}")
            tally = part()
            total.add(tally)
            times.append((name.split(",")[0], time.monotonic() - begin, tally))
            say(f"== {name}: {tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped in {times[-1][1]:.0f}s")
            if name == "build.release" and tally.failed:
                break  # nothing after it would say anything new
        say("")
        for note in total.notes:
            say(note if note.startswith("skipped") else f"FAILED {note}")
        say(f"took {time.monotonic() - started:.0f}s: " + ", ".join(f"{n} {s:.0f}s" for n, s, _ in times if s >= 1))
        say(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
        return 1 if total.failed else 0


def main():
    parser = argparse.ArgumentParser(prog="./dev test", description=__doc__)
    parser.add_argument("filter", nargs="?", default="", help="run the parts whose name contains this")
    parser.add_argument("--list", action="store_true", help="only list the parts")
    parser.add_argument("--stop", action="store_true", help="stop a pytest part at its first failure")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cache", required=True, help=argparse.SUPPRESS)
    return Suite(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
