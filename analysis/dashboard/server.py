"""Serves the page on the loopback, to whoever has the token: every user of a login node reaches its loopback.

The printed link carries the token. The first visit exchanges it for a cookie that scripts cannot read, and goes on to
the same address without the token, so that it stays out of the history and of links that are passed on. The page and
the connection that carries its data are refused without that cookie; a page of another site cannot open the connection,
because its origin is not ours.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import signal
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

from bokeh.server.auth_provider import AuthProvider
from faultsweep.analysis.dashboard.follow import FollowedStore
from tornado.httputil import HTTPHeaders
from tornado.web import Finish, OutputTransform, RequestHandler
from tornado.websocket import WebSocketClosedError

from faultsweep.errors import InputError

HOST = "127.0.0.1"
_SENTENCE = "This dashboard opens with the link that faultsweep printed when it was started: it carries the token."
_ORIGINS = ["127.0.0.1", "localhost"]
"""With the port of the server, so that an SSH tunnel has to end at the same one."""


class TokenAuth(AuthProvider):
    """Lets in whoever has the token, in the link at first and in a cookie from then on."""

    def __init__(self, token: str) -> None:
        """Expect this token."""
        self._token = token
        self._cookie = f"faultsweep_{secrets.token_hex(4)}"  # cookies do not know ports: each server has its own name
        super().__init__()

    @property
    def get_user(self) -> Callable[[RequestHandler], str | None]:  # type: ignore[override]  # Bokeh calls what it reads here
        """Return the function that tells whether a request may be answered."""
        return self._user

    def _user(self, handler: RequestHandler) -> str | None:
        given = handler.get_query_argument("token", None)
        if given is not None and hmac.compare_digest(given.encode(), self._token.encode()):
            handler.set_signed_cookie(self._cookie, "user", expires_days=None, httponly=True, samesite="Lax")
            rest = [pair for pair in parse_qsl(handler.request.query, keep_blank_values=True) if pair[0] != "token"]
            handler.redirect(f"{handler.request.path}?{urlencode(rest)}")
            raise Finish
        return "user" if handler.get_signed_cookie(self._cookie) else None

    @property
    def login_url(self) -> str:
        """Return where a request without the token is sent."""
        return "/refused"

    @property
    def login_handler(self) -> type[RequestHandler]:
        """Return what answers there."""
        return _Refused


POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of the page: scripts are those that the server has sent with it, and no attribute of an
element is one. Bokeh makes functions of the text of its own callbacks, which takes 'unsafe-eval'."""


class _Guarded(OutputTransform):
    """Adds to every answer what keeps a browser from running, framing or passing on anything that is not ours."""

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """Add the headers, and the nonce to the scripts of a page."""
        nonce = secrets.token_urlsafe(16)
        headers["Content-Security-Policy"] = POLICY.format(nonce=nonce)
        headers["X-Frame-Options"] = "DENY"
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "no-referrer"
        if headers.get("Content-Type", "").startswith("text/html"):
            chunk = chunk.replace(b"<script", f"<script nonce={nonce}".encode())
            if "Content-Length" in headers:
                headers["Content-Length"] = str(len(chunk))
        return status_code, headers, chunk


class _Refused(RequestHandler):
    """Says how to get in."""

    def get(self) -> None:
        self.set_status(403)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(f"<!doctype html><title>faultsweep</title><p style='font:16px sans-serif;margin:3em'>{_SENTENCE}")


def make_server(store: FollowedStore, port: int = 0, token: str | None = None) -> tuple[Any, str]:
    """Return a server that has not started yet, and the link that opens the dashboard.

    Parameters
    ----------
    store : what is shown.
    port : on the loopback; 0 takes a free one.
    token : what the link carries; a random one if not given.

    Raises
    ------
    InputError
        The port is taken.
    """
    import panel as pn
    from faultsweep.analysis.dashboard.app import make_page, make_waiting_page

    token = token or secrets.token_urlsafe(32)
    pn.extension("tabulator", sizing_mode=None, notifications=False)
    try:
        server = pn.io.server.get_server(
            {"/": lambda: make_page(store) if store.is_there else make_waiting_page(store)},
            port=port,
            address=HOST,
            title=f"faultsweep: {store.data.attrs.get('name', 'sweep') if store.is_there else 'waiting'}",
            show=False,
            start=False,
            websocket_origin=_ORIGINS,
            auth_provider=TokenAuth(token),
            cookie_secret=secrets.token_hex(32),
            include_headers=[],
            include_cookies=[],
        )
    except OSError as error:
        raise InputError(f"port {port}: cannot be opened on {HOST} ({error.strerror}); name another, or none") from None
    server._tornado.add_transform(_Guarded)
    return server, f"http://{HOST}:{server.port}/?token={token}"


def _is_news(record: logging.LogRecord) -> bool:
    """Tell whether an error is one: that a browser was closed while it was written to, or while it came, is not."""
    error = record.exc_info[1] if record.exc_info else None
    is_early = isinstance(error, AssertionError) and record.getMessage().startswith("Uncaught exception GET /ws")
    return not (isinstance(error, WebSocketClosedError) or is_early)


def serve(store: FollowedStore, port: int, view: str, started: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; ``started`` is called with the link once it can be opened."""
    # they take seconds, which no page should wait for
    import hvplot.pandas  # noqa: F401 - loaded here, used by the views
    import matplotlib.figure  # noqa: F401 - the same
    import scipy.stats  # noqa: F401 - the same

    server, link = make_server(store, port)
    if store.is_there:
        store.facts()
    for name in ("asyncio", "tornado.application"):
        logging.getLogger(name).addFilter(_is_news)
    store.start()
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: server.io_loop.add_callback_from_signal(server.io_loop.stop))
    server.io_loop.add_callback(started, f"{link}&{view}" if view else link)
    try:
        server.io_loop.start()
    finally:
        store.stop()
        server.stop()
