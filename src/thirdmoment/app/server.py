"""The live page: a small server for this machine, or for others that know its token."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

import uvicorn

from thirdmoment._array import effective_threads
from thirdmoment._constants import Limit, Work
from thirdmoment.app.site import Refused, Site, is_loopback
from thirdmoment.exceptions import InvalidInput
from thirdmoment.models.base import check_integer

if TYPE_CHECKING:
    from thirdmoment.app.explorer import Explorer

WAITING: Limit[int] = 64  # questions that wait for a thread; the next is sent away
CONNECTIONS: Limit[int] = 256
TRIED: Work[int] = 100  # ports, from the one that was asked for
PATIENCE: Work[float] = 5.0  # seconds that a start or a stop may take


class Server:
    """The page of an explorer at an address of this machine; ``Explorer.serve`` makes it.

    Attributes
    ----------
    url : str
        Where the page is, with the token where one is asked for.
    token : str or None
        What visitors must know where other machines reach the page.
    port : int
        Where it listens: the port that was asked for, or the next one that was free.
    """

    def __init__(self, explorer: Explorer, *, host: str = "127.0.0.1", port: int = 8642) -> None:
        self.explorer, self.host = explorer, host
        self.socket = _bound(host, check_integer("port", port, 0))
        address, self.port = self.socket.getsockname()[:2]
        self.token = None if is_loopback(address) else secrets.token_urlsafe(24)
        self.pool = ThreadPoolExecutor(max(2, effective_threads(None)), "explorer")
        self.room = WAITING + max(2, effective_threads(None))
        site = Site(explorer, self.work, host=host, port=self.port, token=self.token)
        config = uvicorn.Config(
            site, http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
            server_header=False, proxy_headers=False, limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=int(PATIENCE),
        )  # fmt: skip
        self._uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="explorer", daemon=True)
        self._ended = threading.Event()  # an interrupted join takes a running thread for ended

    def _run(self) -> None:
        try:
            self._uvicorn.run(sockets=[self.socket])
        finally:
            self._ended.set()

    @property
    def url(self) -> str:
        name = self.host if self.host not in ("0.0.0.0", "::", "") else socket.gethostname()
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    def start(self) -> Server:
        """Begin to listen; returns when the page can be opened."""
        try:
            self.explorer.prepare()
        except BaseException:
            self.socket.close()
            raise
        self._thread.start()
        pause = threading.Event()
        for _ in range(int(PATIENCE / 0.01)):
            if self._uvicorn.started:
                return self
            pause.wait(0.01)
        self.stop()
        raise OSError(errno.ETIMEDOUT, "The server did not start", self.url)

    def open(self) -> None:
        """Show the page in a browser, where this machine has one with windows."""
        windows = sys.platform in ("win32", "darwin")
        if windows or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
            webbrowser.open(self.url)

    def stop(self) -> None:
        """Answer what was asked, then end."""
        self._uvicorn.should_exit = True
        if self._thread.ident is not None:
            self._ended.wait(2 * PATIENCE)
        self.socket.close()
        self.pool.shutdown(cancel_futures=True)

    def wait(self) -> None:
        """Serve until Ctrl-C, or until the process is asked to end."""
        main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGTERM, _interrupt) if main else None
        try:
            while not self._ended.wait(0.5):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()
            if main:
                signal.signal(signal.SIGTERM, before)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def work(self, function: Callable[..., Any], *args: Any) -> Any:
        """The result of a function, on a thread of the pool; refused where too many wait."""
        if self.room <= 0:
            raise Refused(503, "Too many questions at once. Try again in a moment.")
        self.room -= 1  # only the one thread of the loop is here
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, function, *args)
        finally:
            self.room += 1


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _bound(host: str, port: int) -> socket.socket:
    """A listening socket at the port or, where that is in use, at the next free one."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise InvalidInput(f"host={host!r} is no address of this machine.") from error
    last = min(port + TRIED - 1, 65_535)
    for tried in range(port, last + 1):
        own = socket.socket(family, kind, protocol)  # without it asyncio waits to fill packets
        if sys.platform != "win32":  # there it would let two servers share a port
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            own.bind((place[0], tried, *place[2:]))
            own.listen(128)
            return own
        except OSError as error:
            own.close()
            if error.errno == errno.EADDRNOTAVAIL:
                raise InvalidInput(f"host={host!r} is no address of this machine.") from error
            if error.errno != errno.EADDRINUSE:
                raise
    raise InvalidInput(f"No port from {port} to {last} is free; give another one as port=.")
