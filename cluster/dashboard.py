"""Dask's own dashboard, on request: on the loopback, to whoever has the token.

Every user of a machine reaches its loopback, so the link carries a token. The first visit exchanges it for a cookie
that scripts cannot read, and goes on without it. Without that cookie every page, and the connection that carries its
data, is refused. A tunnel has to end at the same port, because the data go to pages of this address only.
"""

from __future__ import annotations

import getpass
import hmac
import os
import secrets
import socket
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import distributed
from faultsweep.cluster.settings import DASHBOARD
from tornado.httputil import HTTPServerRequest
from tornado.routing import Router
from tornado.web import RequestHandler

HOST = "127.0.0.1"
DASHBOARD_SETTINGS: dict[str, Any] = {
    "distributed.scheduler.http.routes": [
        "distributed.http.scheduler.info",
        "distributed.http.scheduler.json",
        "distributed.http.statics",
    ],
    "distributed.scheduler.dashboard.bokeh-application": {
        "allow_websocket_origin": [HOST, "localhost"],
        "keep_alive_milliseconds": 500,
        "check_unused_sessions_milliseconds": 500,
    },
}


class _Refused(RequestHandler):
    """Says how to get in."""

    def prepare(self) -> None:
        self.set_status(403)
        self.finish("This page opens with the link that faultsweep printed: it carries a token.")


class _Admitted(RequestHandler):
    """Exchanges the token in the link for a cookie."""

    def initialize(self, cookie: str, token: str) -> None:
        self._cookie = (cookie, token)

    def get(self, *_: str) -> None:
        self.set_cookie(*self._cookie, expires_days=None, httponly=True, samesite="Lax")
        rest = [pair for pair in parse_qsl(self.request.query, keep_blank_values=True) if pair[0] != "token"]
        self.redirect(self.request.path + (f"?{urlencode(rest)}" if rest else ""))


class _Gate(Router):
    """Stands before the pages of a scheduler."""

    def __init__(self, application: Any, token: str) -> None:
        self._application = application
        self._token = token
        self._cookie = f"faultsweep_{secrets.token_hex(4)}"  # cookies do not know ports: each scheduler has its own

    def find_handler(self, request: HTTPServerRequest, **more: Any) -> Any:
        cookie = request.cookies.get(self._cookie)
        if cookie is not None and self._is_token(cookie.value.encode()):
            return self._application.find_handler(request, **more)
        if any(self._is_token(given) for given in request.query_arguments.get("token", [])):
            return self._application.get_handler_delegate(
                request, _Admitted, {"cookie": self._cookie, "token": self._token}
            )
        return self._application.get_handler_delegate(request, _Refused)

    def _is_token(self, given: bytes) -> bool:
        return hmac.compare_digest(given, self._token.encode())


class ShownScheduler(distributed.Scheduler):
    """A scheduler whose dashboard is open to whoever has the token; to be made with ``DASHBOARD_SETTINGS``."""

    def __init__(self, **options: Any) -> None:
        """Take the options of a scheduler."""
        super().__init__(**{**options, "dashboard": True, "dashboard_address": f"{HOST}:0"})
        token = secrets.token_urlsafe(32)
        # the server listens already, but this thread answers: nothing was served yet
        self.http_server.request_callback = _Gate(self.http_application, token)
        self.http_port: int = self.http_server.port  # type: ignore[attr-defined]  # distributed sets it
        self.link = f"http://{HOST}:{self.http_port}/status?token={token}"

    def how_to_reach(self) -> str:
        """Return the link of the dashboard, and the ssh line that makes it open on another machine."""
        user, host, port = getpass.getuser(), socket.gethostname(), self.http_port
        login = os.environ.get("SLURM_SUBMIT_HOST") or os.environ.get("PBS_O_HOST", host)
        jump = "" if login == host else f" -J {user}@{login}"
        return (
            f"Dask's dashboard: {self.link}\n"
            f"  from another machine, first: ssh -N{jump} -L {port}:{HOST}:{port} {user}@{host}"
        )


class ShownCluster(distributed.LocalCluster):
    """Worker processes of this machine, with a ``ShownScheduler``."""

    async def _start(self) -> None:
        self.scheduler_spec["cls"] = ShownScheduler
        await super()._start()


def write_how_to_reach(scheduler: Any, folder: Path) -> str:
    """Write how the dashboard of a ``ShownScheduler`` is reached into ``folder``, for its owner alone; returns it."""
    text = scheduler.how_to_reach()
    with os.fdopen(os.open(folder / DASHBOARD, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    return text
