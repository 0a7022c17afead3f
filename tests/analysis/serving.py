"""A dashboard that is served, and a browser that looks at it."""

from __future__ import annotations

import subprocess
import sys
import time


class Served:
    """A dashboard over a store, in a process of its own."""

    def __init__(self, path, *options):
        self.path = path
        self.log = path.with_name("server.log")
        command = [sys.executable, "-P", "-m", "faultsweep", "dashboard", str(path), *options]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.link = self.process.stdout.readline().strip()
        self.address = self.link.partition("?")[0]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()

    def stop(self, expected=""):
        self.process.terminate()
        assert self.process.wait(20) == 0
        said = self.log.read_text()
        assert said == expected, said


def watched(context, served):
    """Return a new page, and a list of what it complains about and of what it asks of others."""
    page, complaints = context.new_page(), []
    ours = (served.address, "data:", "blob:")
    page.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: request.url.startswith(ours) or complaints.append(request.url))
    return page, complaints


def wait_for(page, condition, seconds=15.0):
    end = time.monotonic() + seconds
    while not holds(condition):
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def holds(condition) -> bool:
    """Whether a condition holds; not while the page loads itself anew."""
    from playwright import sync_api as playwright

    try:
        return condition()
    except playwright.Error as error:
        if "Execution context was destroyed" not in str(error):
            raise
        return False
