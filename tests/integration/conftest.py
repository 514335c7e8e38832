import shutil
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from heliostat import BIN, IMAGES, LIVING, ROOT, Heliostat  # noqa: E402
from stub import make_prefix  # noqa: E402


# Whoever starts the tests in the background of a script has them ignore SIGINT, and programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    for item in items:
        if not (BIN / "heliostatd").exists():
            item.add_marker(pytest.mark.skip(reason=f"no programs in {BIN}: ./dev build"))


def ray_prefix(version):
    prefix = IMAGES / f"ray-{version}"
    if not (prefix / "bin/ray").exists():
        pytest.skip(f"no Ray {version} at {prefix}: ./dev setup --old-rays")
    return prefix


@pytest.fixture(scope="session")
def examples():
    return ROOT / "examples"


@pytest.fixture(scope="session")
def stub_prefix(tmp_path_factory):
    return make_prefix(tmp_path_factory.mktemp("stub") / "prefix")


def running(settings=None):
    it = Heliostat(settings=settings).up()
    yield it
    it.close()
    shutil.rmtree(it.home, ignore_errors=True)


@pytest.fixture(scope="session")
def real():
    """A daemon with the real Ray as image `default`, shared by the tests that leave nothing but ended jobs."""
    prefix = ray_prefix("2.60.0")
    for it in running():
        it.add_image("default", prefix)
        yield it


@pytest.fixture(scope="module")
def daemon_of_the_file(stub_prefix):
    for it in running():
        it.add_image("default", stub_prefix)
        yield it


@pytest.fixture
def daemon(daemon_of_the_file):
    """A daemon whose Ray is a stub, shared by the tests of one file that need none of their own. A test takes its jobs with it: one that failed
    would hold the pool of those after it."""
    yield daemon_of_the_file
    left = [job["id"] for job in daemon_of_the_file.get(f"/v1/jobs?state={','.join(LIVING)}")["items"]]
    if left:
        daemon_of_the_file.helio("stop", "--wait", *left, check=0)


@pytest.fixture
def stubbed(stub_prefix):
    """A daemon of its own whose Ray is a stub."""
    for it in running():
        it.add_image("default", stub_prefix)
        yield it


@pytest.fixture
def heliostat():
    """A daemon of its own without any image."""
    yield from running()
