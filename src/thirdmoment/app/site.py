"""Requests and their answers: who may ask, what is sent, and how a refusal is said."""

from __future__ import annotations

import ipaddress
import json
import logging
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router

from thirdmoment._constants import Limit
from thirdmoment.app.answers import NotThere, UnknownWord, answer
from thirdmoment.app.page import POLICY, asset, live_page
from thirdmoment.exceptions import InvalidInput

if TYPE_CHECKING:
    from thirdmoment.app.explorer import Explorer

logger = logging.getLogger(__name__)

LONGEST_QUERY: Limit[int] = 4_096  # bytes behind the question mark of an address
LARGEST_BODY: Limit[int] = 65_536  # bytes of a change
LONGEST_NAME: Limit[int] = 200  # characters of a topic's name

COOKIE = "thirdmoment-{port}"  # servers of one machine share what a browser keeps for it
ASSETS = {"explorer.js": "text/javascript", "explorer.css": "text/css"}
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """A request that is not answered, and the sentence that says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Site:
    """The pages of an explorer, behind the checks that every request must pass.

    Parameters
    ----------
    explorer : Explorer
    work : function
        Runs a function with arguments on another thread; its result is awaited.
    host : str
        The name or address that is served.
    token : str or None
        What visitors must know where other machines reach us; None where only this one does.
    """

    def __init__(
        self,
        explorer: Explorer,
        work: Callable[..., Awaitable[Any]],
        *,
        host: str,
        port: int,
        token: str | None,
    ) -> None:
        self.explorer, self.work, self.host, self.token = explorer, work, host, token
        self.cookie = COOKIE.format(port=port)
        self.own = secrets.token_urlsafe(24)  # known to our page alone, which may change things
        routes = [
            Route("/", self.page),
            *(Route(f"/{name}", self.file) for name in ASSETS),
            Route("/api/{kind:str}", self.change, methods=["POST"]),
            Route("/api/{path:path}", self.ask),
        ]
        self.router = Router(routes, redirect_slashes=False, default=_nowhere)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        begun = False

        async def with_headers(message: Any) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                extra = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        try:
            reply = self.checked(Request(scope, receive))
            await (reply or self.router)(scope, receive, with_headers)
        except Exception as error:
            if begun:
                raise
            await said(error)(scope, receive, with_headers)

    def checked(self, request: Request) -> Response | None:
        """An answer that ends the request already, None where it may go on."""
        if len(request.scope["query_string"]) > LONGEST_QUERY:
            raise Refused(414, "The question is too long.")
        if not is_ours(request.headers.get("host", ""), self.host, self.token is not None):
            raise Refused(421, "This address is not the one the page is served at.")
        if self.token is None:
            return None
        given = request.query_params.get("token")
        if given is not None and request.url.path == "/" and _equal(given, self.token):
            reply = RedirectResponse(".", 303)  # the token leaves the address bar
            reply.set_cookie(self.cookie, self.token, httponly=True, samesite="lax")
            return reply
        if not _equal(request.cookies.get(self.cookie, ""), self.token):
            raise Refused(401, "This page asks for the token that is part of its address.")
        return None

    # pages -------------------------------------------------------------------------------------

    async def page(self, _: Request) -> Response:
        text = await self.work(live_page, self.explorer, self.own)
        return Response(text.encode("utf-8", "replace"), media_type="text/html")

    async def file(self, request: Request) -> Response:
        name = request.url.path[1:]
        return Response(asset(name), media_type=ASSETS[name])

    async def ask(self, request: Request) -> Response:
        path, given = request.path_params["path"], dict(request.query_params)
        version = self.explorer.version
        start = time.perf_counter()
        try:
            reply = _json(await self.work(answer, self.explorer, path, given))
        except UnknownWord as error:  # a person's typing, which is no fault of the page
            reply = _json({"error": str(error), "near": error.near})
        reply.headers["X-Version"] = str(version)  # other windows may have changed the topics
        # shown by the tools of browsers, and read by benchmarks/explorer.py
        reply.headers["Server-Timing"] = f"answer;dur={1e3 * (time.perf_counter() - start):.2f}"
        return reply

    async def change(self, request: Request) -> Response:
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Refused(403, "Another page asked for this change.")
        if not _equal(request.headers.get("x-token", ""), self.own):
            raise Refused(403, "The page is older than the server. Load it again.")
        if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            raise Refused(415, "A change is sent as JSON.")
        body = await _body(request)
        await self.work(_change, self.explorer, request.path_params["kind"], body)
        return _json(await self.work(answer, self.explorer, "overview", {}))


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    address = ipaddress.ip_address(host.split("%")[0])
    return bool((getattr(address, "ipv4_mapped", None) or address).is_loopback)


def is_ours(header: str, host: str, public: bool) -> bool:
    """Whether a Host header names us; a foreign name that leads here is a trick of another page.

    The port may be another one, of a tunnel for instance. A page that others reach has a token, so
    that any number is good there.
    """
    if header.startswith("["):
        name, _, port = header[1:].partition("]")
        port = port.removeprefix(":")
    else:
        name, _, port = header.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return False
    name = name.lower()
    if name in ("localhost", host.lower()):
        return True
    try:
        return is_loopback(name) or public
    except ValueError:
        own = socket.gethostname().lower()
        return public and name in (own, f"{own}.local", socket.getfqdn().lower())


def _equal(given: str, known: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), known.encode())


async def _body(request: Request) -> dict[str, Any]:
    """What a change says; a body that is too large is not read to its end."""
    text = b""
    async for part in request.stream():
        text += part
        if len(text) > LARGEST_BODY:
            raise Refused(413, "The change is too large.")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused(400, "A change is sent as JSON.")
    return found


def _change(explorer: Explorer, kind: str, body: dict[str, Any]) -> None:
    """A change of what the visitor saw, one at a time."""
    with explorer._changing:
        _change_now(explorer, kind, body)


def _change_now(explorer: Explorer, kind: str, body: dict[str, Any]) -> None:
    if body.get("version", explorer.version) != explorer.version:
        raise Refused(
            409,
            "The topics were changed in another window. They are shown as they are now; try again.",
        )
    name = body.get("name")
    if kind == "rename" and isinstance(name, str):
        if len(name) > LONGEST_NAME:
            raise Refused(
                400, f"The name has {len(name)} characters; {LONGEST_NAME} are the limit."
            )
        explorer.rename(body.get("topic"), name.strip())  # type: ignore[arg-type]
    elif kind == "merge" and isinstance(body.get("topics"), list):
        explorer.merge(body["topics"])
    elif kind == "undo":
        explorer.undo()
    else:
        raise Refused(400, "There is no such change.")


def _json(data: Any, status: int = 200) -> Response:
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


async def _nowhere(scope: Any, receive: Any, send: Any) -> None:
    await _json({"error": "There is no such page."}, 404)(scope, receive, send)


def said(error: Exception) -> Response:
    """An error as one sentence; what we did not foresee goes to the log, not to the visitor."""
    if isinstance(error, Refused):
        return _json({"error": str(error)}, error.status)
    if isinstance(error, InvalidInput):
        return _json({"error": str(error)}, 404 if isinstance(error, NotThere) else 400)
    logger.error("A request failed.", exc_info=error)
    return _json({"error": "Something went wrong on the server; its log says what."}, 500)
