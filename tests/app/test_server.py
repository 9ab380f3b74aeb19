"""The live page: who may ask, what is refused, and what many questions at once do."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from tests.app import HOSTILE, SCRIPT, THEMES, corpus, explorer
from thirdmoment.app import server as server_module
from thirdmoment.app import site as site_module
from thirdmoment.app.answers import answer
from thirdmoment.app.server import Server
from thirdmoment.app.site import is_ours
from thirdmoment.exceptions import InvalidInput


@pytest.fixture(scope="module")
def live():
    with Server(explorer(), port=0) as own:
        yield own


def ask(own, path, *, method="GET", body=None, host="127.0.0.1", **headers):
    """Status, headers and body of one request."""
    line = http.client.HTTPConnection(host, own.port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, path, body, named)
    reply = line.getresponse()
    text = reply.read().decode()
    line.close()
    return reply.status, dict(reply.getheaders()), text


def raw(own, text):
    """The first line that comes back to bytes that no client would send."""
    with socket.create_connection(("127.0.0.1", own.port), timeout=10) as line:
        line.sendall(text)
        return line.recv(4096).split(b"\r\n")[0].decode()


def page_token(own, **headers):
    text = ask(own, "/", **headers)[2]
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])["token"]


def change(own, kind, body, **headers):
    given = {"Content-Type": "application/json", "X-Token": page_token(own), **headers}
    return ask(own, f"/api/{kind}", method="POST", body=json.dumps(body), **given)


# answers -------------------------------------------------------------------------------------


def test_the_server_sends_what_the_library_says(live):
    for path in ("overview", "words", "topic/1", "document/602", "search?q=whale"):
        status, headers, text = ask(live, f"/api/{path}")
        assert status == 200
        assert headers["content-type"] == "application/json"
        kind, _, query = path.partition("?q=")
        assert json.loads(text) == answer(live.explorer, kind, {"q": query} if query else {})


def test_the_page_and_its_two_files_are_served(live):
    kinds = {"/": "text/html", "/explorer.js": "text/javascript", "/explorer.css": "text/css"}
    for path, kind in kinds.items():
        status, headers, text = ask(live, path)
        assert status == 200
        assert headers["content-type"].startswith(kind)
        assert len(text) > 1000


def test_an_unknown_word_is_answered_with_near_ones(live):
    status, _, text = ask(live, "/api/search?q=telescpe")
    assert status == 200
    assert json.loads(text)["near"][0] == "telescope"


def test_names_are_changed_by_our_own_page():
    with Server(explorer(), port=0) as own:
        status, _, text = change(own, "rename", {"topic": 1, "name": f" {SCRIPT} "})
        assert status == 200
        assert json.loads(text)["topics"][1]["label"] == SCRIPT
        assert len(json.loads(change(own, "merge", {"topics": [0, 2]})[2])["topics"]) == 3
        assert len(json.loads(change(own, "undo", {})[2])["topics"]) == 4


def test_a_window_that_shows_old_topics_changes_nothing():
    with Server(explorer(), port=0) as own:
        seen = json.loads(ask(own, "/api/overview")[2])["version"]
        assert change(own, "merge", {"topics": [0, 1], "version": seen})[0] == 200
        status, _, text = change(own, "rename", {"topic": 2, "name": "x", "version": seen})
        assert status == 409
        assert "another window" in json.loads(text)["error"]
        assert "x" not in [
            row["label"] for row in json.loads(ask(own, "/api/overview")[2])["topics"]
        ]
        assert change(own, "undo", {"version": seen + 1})[0] == 200
        assert ask(own, "/api/topic/0")[1]["x-version"] == str(seen + 2)


def test_an_interrupt_waits_for_the_server_to_end(monkeypatch):
    own = Server(explorer(), port=0).start()
    open_at_close = []
    ended = own._ended.wait

    def interrupted(seconds):
        if seconds == 0.5:  # as of the main loop
            raise KeyboardInterrupt
        return ended(seconds)

    monkeypatch.setattr(own._ended, "wait", interrupted)
    monkeypatch.setattr(own.pool, "shutdown", lambda **_: open_at_close.append(own._ended.is_set()))
    own.wait()
    assert open_at_close == [True]
    assert not own._thread.is_alive()


def test_a_server_that_cannot_start_leaves_its_port():
    class Broken:
        def prepare(self):
            raise MemoryError

    own = Server(Broken(), port=0)
    with pytest.raises(MemoryError):
        own.start()
    assert own.socket.fileno() == -1


# who may ask ---------------------------------------------------------------------------------


def test_only_this_machine_is_listened_to(live):
    assert live.socket.getsockname()[0] == "127.0.0.1"
    assert live.token is None


@pytest.mark.parametrize(
    ("header", "good"),
    [
        ("127.0.0.1:8642", True),
        ("localhost", True),
        ("LOCALHOST:9", True),
        ("[::1]:8642", True),
        ("[::1]", True),
        ("127.8.9.1", True),
        ("evil.example", False),
        ("evil.example:8642", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("192.168.0.7", False),
        ("[2001:db8::1]", False),
        ("[::1", True),
        ("[::1]evil", False),
        ("localhost:evil", False),
        ("", False),
        ("127.0.0.1@evil.example", False),
    ],
)
def test_a_foreign_host_header_is_refused(live, header, good):
    assert is_ours(header, "127.0.0.1", public=False) is good
    for path in ("/", "/api/overview", "/explorer.js"):
        status, _, text = ask(live, path, Host=header)
        assert (status == 200) is good
        if not good and header:
            assert status == 421
            assert "not the one" in json.loads(text)["error"]


def test_the_loopback_of_ipv6_is_served_too():
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("this machine has no IPv6")
    with Server(explorer(), host="::1", port=0) as own:
        assert own.url.startswith("http://[::1]:")
        assert own.token is None
        assert ask(own, "/api/overview", host="::1")[0] == 200


def test_other_machines_need_the_token():
    with Server(explorer(), host="0.0.0.0", port=0) as own:
        assert own.token in own.url
        for path in ("/", "/api/overview", "/explorer.js", "/?token=wrong", "/?token="):
            status, headers, text = ask(own, path)
            assert status == 401
            assert "token" in json.loads(text)["error"]
            assert "set-cookie" not in headers
        assert ask(own, f"/api/overview?token={own.token}")[0] == 401, "the page alone takes it"
        status, headers, _ = ask(own, f"/?token={own.token}")
        assert status == 303
        assert own.token not in headers["location"]
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        known = cookie.split(";")[0]
        assert ask(own, "/api/overview", Cookie=known)[0] == 200
        assert ask(own, "/api/overview", Cookie=known[:-1])[0] == 401
        assert ask(own, "/", Cookie=known, Host="evil.example")[0] == 421
        status = ask(own, "/api/undo", method="POST", body="{}", Cookie=known)[0]
        assert status == 403, "the cookie alone changes nothing"


# headers -------------------------------------------------------------------------------------


def test_every_reply_has_the_strict_headers(live):
    paths = {"/": 200, "/api/overview": 200, "/explorer.css": 200, "/nothing": 404,
             "/api/topic/99": 404, "/api/search?q=": 400, f"/?{'x' * 5000}": 414}  # fmt: skip
    for path, wanted in paths.items():
        status, headers, _ = ask(live, path, Origin="http://evil.example")
        assert status == wanted, path
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in headers if name.startswith("access-control")]
        assert "server" not in headers


def test_a_preflight_of_another_page_is_not_allowed(live):
    status, headers, _ = ask(live, "/api/rename", method="OPTIONS", Origin="http://evil.example",
                             Access_Control_Request_Method="POST")  # fmt: skip
    assert status == 405
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Token": "wrong"}, 403),
        ({"X-Token": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Host": "evil.example"}, 421),
    ],
)
def test_a_change_that_is_not_ours_is_refused(live, headers, status):
    before = answer(live.explorer, "overview", {})
    assert change(live, "rename", {"topic": 0, "name": "stolen"}, **headers)[0] == status
    assert answer(live.explorer, "overview", {}) == before


def test_a_change_by_get_changes_nothing(live):
    for path in ("/api/rename?topic=0&name=x", "/api/undo", "/api/merge"):
        assert ask(live, path, X_Token=page_token(live))[0] == 404
    assert answer(live.explorer, "overview", {})["changes"] == 0


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("rename", "["),
        ("rename", "[]"),
        ("rename", "[" * 60_000),
        ("rename", '{"topic": 0}'),
        ("rename", '{"topic": 0, "name": 3}'),
        ("rename", '{"topic": true, "name": "x"}'),
        ("rename", '{"topic": "no", "name": "x"}'),
        ("rename", '{"topic": 1e99, "name": "x"}'),
        ("rename", json.dumps({"topic": 0, "name": "x" * 201})),
        ("merge", '{"topics": 3}'),
        ("merge", '{"topics": [[1], {}]}'),
        ("merge", json.dumps({"topics": [1] * 9000})),
        ("undo", "{}"),
        ("delete", "{}"),
        ("rename", b"\xff\xfe"),
    ],
)
def test_a_wrong_change_is_one_sentence(live, kind, body):
    token = page_token(live)
    status, _, text = ask(live, f"/api/{kind}", method="POST", body=body, X_Token=token,
                          Content_Type="application/json")  # fmt: skip
    assert status == 400
    assert set(json.loads(text)) == {"error"}
    assert "Traceback" not in text


# too much ------------------------------------------------------------------------------------


def test_a_body_that_is_too_large_is_not_read(live):
    body = json.dumps({"topic": 0, "name": "x" * 70_000})
    status, _, text = ask(live, "/api/rename", method="POST", body=body, X_Token=page_token(live),
                          Content_Type="application/json")  # fmt: skip
    assert status == 413
    assert "too large" in text
    chunks = (b"x" * 10_000 for _ in range(10_000))  # 100 MB without a length
    start = time.perf_counter()
    try:
        status = ask(live, "/api/rename", method="POST", body=chunks, X_Token=page_token(live),
                     Content_Type="application/json")[0]  # fmt: skip
        assert status == 413
    except (ConnectionError, http.client.HTTPException):
        pass  # it hung up before all was sent
    assert time.perf_counter() - start < 5


def test_a_query_that_is_too_long_is_refused(live):
    assert ask(live, f"/api/search?q={'x' * 5000}")[0] == 414
    status, _, text = ask(live, f"/api/search?q={'x' * 600}")
    assert status == 400
    assert "500 are the limit" in text
    assert ask(live, f"/api/search?q={'ship+' * 30}")[0] == 400
    line = raw(live, b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert line.split()[1][0] == "4"


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/%2e%2e/server.py", "/static/explorer.js", "/explorer.js/../server.py",
     "/api/../server.py", "/api/..%2f..%2fetc/passwd", "//etc/passwd", "/api/document/..%2f1",
     "/explorer.js%00", "/api/topic/1%00"],
)  # fmt: skip
def test_paths_lead_nowhere_but_to_pages(live, path):
    status, _, text = ask(live, path)
    assert status == 404
    assert "root:" not in text
    assert "import" not in text


@pytest.mark.parametrize(
    "text", [b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n",
             b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
)  # fmt: skip
def test_what_is_no_request_is_refused(live, text):
    assert raw(live, text).split()[1][0] == "4"
    assert ask(live, "/api/overview")[0] == 200


def test_what_we_did_not_foresee_is_not_shown_to_the_visitor(live, monkeypatch, caplog):
    def fails(*_):
        raise RuntimeError("a secret of the house")

    monkeypatch.setattr(site_module, "answer", fails)
    status, _, text = ask(live, "/api/overview")
    assert status == 500
    assert "secret" not in text
    assert "Traceback" not in text
    assert "a secret of the house" in caplog.text


def test_too_many_questions_are_sent_away_with_a_sentence(monkeypatch):
    monkeypatch.setattr(server_module, "WAITING", 2)
    held, going = threading.Event(), threading.Semaphore(0)

    def slow(*_):
        going.release()
        held.wait(20)
        return {}

    monkeypatch.setattr(site_module, "answer", slow)
    with Server(explorer(), port=0) as own, ThreadPoolExecutor(8) as pool:
        room = own.room
        asked = [pool.submit(ask, own, "/api/overview") for _ in range(room)]
        for _ in range(own.pool._max_workers):
            going.acquire(timeout=10)
        while own.room > 0:
            time.sleep(0.01)
        status, _, text = ask(own, "/api/overview")
        assert status == 503
        assert "Try again in a moment" in text
        held.set()
        assert [one.result()[0] for one in asked] == [200] * room
        assert ask(own, "/api/overview")[0] == 200


# texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_come_as_data(live, name):
    row = corpus().ids.index(name)
    status, headers, text = ask(live, f"/api/document/{row}")
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert len(text) < 200_000
    found = json.loads(text)
    assert found["id"] == name
    shown = "".join(part if isinstance(part, str) else part[0] for part in found["parts"])
    assert HOSTILE[name].startswith(shown)


def test_the_page_itself_holds_no_markup_of_the_data(live):
    text = ask(live, "/")[2]
    assert SCRIPT not in text
    assert text.count("<script") == 2
    assert "Letters &amp; &lt;tales&gt;" in text


# many at once --------------------------------------------------------------------------------


def test_a_thousand_questions_of_eight_clients_are_all_answered_rightly(live):
    words = [word for theme in THEMES.values() for word in theme.split()]
    known = {word: answer(live.explorer, "search", {"q": word}) for word in words}

    def client(number):
        line = http.client.HTTPConnection("127.0.0.1", live.port, timeout=30)
        wrong = 0
        for i in range(125):
            word = words[(7 * number + i) % len(words)]
            line.request("GET", f"/api/search?q={quote(word)}")
            reply = line.getresponse()
            wrong += reply.status != 200 or json.loads(reply.read()) != known[word]
        line.close()
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(client, range(8))) == [0] * 8


@pytest.mark.slow
def test_memory_stays_flat_over_twenty_thousand_questions():
    script = (
        "import sys; from tests.app import explorer; from thirdmoment.app.server import Server\n"
        "own = Server(explorer(), port=0).start(); print(own.port, flush=True); own.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as run:
        port = int(run.stdout.readline())
        words = [word for theme in THEMES.values() for word in theme.split()]
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        sizes = []
        for i in range(20_000):
            line.request("GET", f"/api/search?q={words[i % len(words)]}+-{words[(i * 7 + 1) % 80]}")
            line.getresponse().read()
            if i % 5000 == 4999:
                with open(f"/proc/{run.pid}/statm") as file:
                    sizes.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        run.send_signal(signal.SIGTERM)
        assert run.wait(20) == 0
    assert max(sizes) - sizes[0] < 20e6  # 15,000 answers of 10 kB are 150 MB


# beginning and end ---------------------------------------------------------------------------


def test_the_next_port_is_taken_where_one_is_in_use(live):
    with Server(explorer(), port=live.port) as own:
        assert live.port < own.port <= live.port + 100
        assert ask(own, "/api/overview")[0] == 200


@pytest.mark.parametrize(
    ("given", "said"),
    [({"port": 70_000}, "port"), ({"port": "x"}, "port"), ({"host": "no.such.example"}, "host"),
     ({"host": "203.0.113.5"}, "no address of this machine")],
)  # fmt: skip
def test_a_place_that_cannot_be_had_is_said(given, said):
    with pytest.raises(InvalidInput, match=said):
        Server(explorer(), **given)


def test_a_stop_leaves_no_thread_and_no_port():
    before = set(threading.enumerate())
    own = explorer().serve(port=0, browser=False, block=False)
    assert repr(own) == f"Server('http://127.0.0.1:{own.port}/')"
    assert ask(own, "/api/search?q=whale")[0] == 200
    start = time.perf_counter()
    own.stop()
    assert time.perf_counter() - start < 5
    assert set(threading.enumerate()) - before == set()
    with pytest.raises(ConnectionError):
        ask(own, "/")
    own.stop()  # a second one does nothing


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_without_a_word(kind):
    script = "from tests.app import explorer; explorer().serve(port=0, browser=False)"
    run = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    assert "http://127.0.0.1:" in run.stderr.readline()
    run.stderr.readline()
    time.sleep(0.2)
    run.send_signal(kind)
    assert run.wait(20) == 0
    assert run.stderr.read() == ""
    run.stderr.close()
