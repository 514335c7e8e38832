"""A real browser, and what a person does with it at heliostat's pages."""
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest

from heliostat import eventually

# Every route of the dashboard that this Ray registers, as (method, path) in JSON.
ROUTES = """
import importlib, json, pkgutil
import ray.dashboard.modules as modules
from ray.dashboard import routes
from ray.dashboard.subprocesses.routes import SubprocessRouteTable
for found in pkgutil.walk_packages(modules.__path__, modules.__name__ + "."):
    if "test" not in found.name:
        try:
            importlib.import_module(found.name)
        except ImportError:
            pass
tables = {SubprocessRouteTable} | {t for t in vars(routes).values() if isinstance(t, type) and isinstance(vars(t).get("_bind_map"), dict)}
print(json.dumps(sorted({(method, path) for table in tables for method, paths in table._bind_map.items() for path in paths})))
"""


def open_browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            pytest.skip(f"no {program}: ./dev setup --old-rays")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def text_of(browser):
    from selenium.common.exceptions import WebDriverException

    try:
        return browser.find_element("tag name", "body").text
    except WebDriverException:
        return ""  # between two pages


def shows(browser, *words, seconds=60):
    eventually(lambda: f"{words} at {browser.current_url}: {text_of(browser)[:2000]}", lambda: all(word in text_of(browser) for word in words), seconds, 0.3)


def log_in(browser, token):
    shows(browser, "API token")
    browser.find_element("name", "token").send_keys(token)
    browser.find_element("css selector", "form button").click()


def dashboard_journey(daemon, job, token):
    """Log in as a viewer, look around in Ray's pages, be refused what acts, log out."""
    base = daemon.daemon_file()["url"] + f"/jobs/{job}/dashboard/"
    attempt = daemon.attempts(job)[-1]["id"]
    addresses = [node["address"] for node in daemon.nodes(job)]
    browser = open_browser()
    try:
        browser.get(base)
        log_in(browser, token)
        browser.get(base + "#/cluster")
        shows(browser, *addresses)
        browser.get(base + "#/jobs")
        shows(browser, attempt, "RUNNING")
        browser.get(base + "#/actors")
        shows(browser, "Actors")
        browser.get(base + "#/logs")
        shows(browser, addresses[0])
        browser.get(base + "worker/traceback?pid=1&ip=127.0.0.1")
        shows(browser, "role viewer may not", "developer for one's own")
        browser.get(daemon.daemon_file()["url"] + "/login")
        shows(browser, "Logged in", "viewer")
        browser.find_element("css selector", "form button").click()
        shows(browser, "API token")
        browser.get(base)
        shows(browser, "API token")

        link = daemon.helio("dashboard", job, check=0).stdout.strip()
        browser.get(link)
        browser.get(base + "#/jobs")
        shows(browser, attempt)
    finally:
        browser.quit()


def record_journey(daemon, job):
    """What a link shows after the cluster."""
    browser = open_browser()
    try:
        browser.get(daemon.helio("dashboard", job, check=0).stdout.strip())
        shows(browser, job, "stopped", "up 2", "Where the time went")
    finally:
        browser.quit()


def answer(url, token, method):
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"}, data=b"{}" if method in ("POST", "PUT", "PATCH") else None)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def walk_routes(daemon, prefix, job, token):
    """As a viewer, every route of Ray's own dashboard: what changes or runs anything is refused before it gets there."""
    said = subprocess.run([f"{prefix}/bin/python", "-c", ROUTES], capture_output=True, text=True, check=True, timeout=120).stdout
    routes = [tuple(pair) for pair in json.loads(said.splitlines()[-1])]
    assert len(routes) > 50, routes
    refused, passed = [], []
    for method, path in routes:
        target = re.sub(r"\{[^}]*\}", "x1", path)
        if "logs/tail" in target or "logs/stream" in target:
            continue  # streams: the unit tests have them
        status, text = answer(daemon.daemon_file()["url"] + f"/jobs/{job}/dashboard{target}", token, method)
        (refused if status == 403 and ("needs role" in text or "/ray/default" in text) else passed).append((method, path))
    acting = re.compile("kill|profile|traceback|stop|delay|dump|packages|report_events|authenticate$|scale|task_events")
    assert all(method == "GET" for method, _ in passed), [pair for pair in passed if pair[0] != "GET"]
    assert not [path for _, path in passed if acting.search(path)], passed
    assert [path for method, path in refused if method == "GET"], "some reads act"
    for expected in ("/nodes", "/api/jobs/", "/api/v0/tasks"):
        assert ("GET", expected) in passed, refused
