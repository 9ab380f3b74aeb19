"""The explorer in a browser: how long a question takes, and how much the server holds.

20,000 reviews of IMDb, 100 topics. The texts are the counted words of each review in random order
(the reviews themselves are not part of the data), so that excerpts and marks do their usual work;
groups are ratings, times are drawn. The index is read from the file that was kept, by a server in a
process of its own. A question is timed in the browser, from the moment the form is sent until the
frame that shows the answer has been drawn; the server's own time is what it says in its
Server-Timing header. Words are the 300 that stand for topics, each asked once, a tenth of a second
after the last answer: what other programs have put in the processor's cache by then is part of what
a person waits for. Then eight clients ask 1,000 questions at once, and one 20,000 after another.
Needs Chromium.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import numpy as np
from common import arguments, load_words, timed, write_table

import thirdmoment as tm
from thirdmoment.app.answers import answer

N, K, WORDS, CLIENTS, AT_ONCE, IN_A_ROW = 20_000, 100, 300, 8, 1000, 20_000
PAUSE = 100  # milliseconds between two questions of a person, less than anyone needs

SERVE = (
    "import sys, thirdmoment as tm\n"
    "own = tm.load(sys.argv[1]).serve(port=0, browser=False, block=False)\n"
    "print(own.port, flush=True); own.wait()"
)

# Milliseconds in the browser and on the server, of one word.
ASK = """async (word) => {
  const box = document.getElementById('query');
  box.value = word;
  // what a frame's callbacks send is read when that frame has been drawn
  const drawn = () => new Promise((done) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = done;
    port2.postMessage(null);
  }));
  const answered = new Promise((done) => new MutationObserver((_, observer) => {
    if (!document.title.startsWith(word + ' ')) return;
    observer.disconnect();
    done();
  }).observe(document.head, { childList: true, subtree: true, characterData: true }));
  const begun = performance.now();
  box.form.requestSubmit();
  await answered;
  await drawn();
  const all = performance.now() - begun;
  const own = performance.getEntriesByType('resource').at(-1);
  performance.clearResourceTimings();
  return [all, own.serverTiming[0].duration];
}"""

PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const one of list.getEntriesByName('first-contentful-paint')) done(one.startTime);
}).observe({ type: 'paint', buffered: true }))"""


def build(data: Path, path: Path) -> list[str]:
    """Keep an explorer; returns words to ask for."""
    X, words = load_words("IMDb", data)
    rng = np.random.default_rng(0)
    X = X[np.sort(rng.permutation(X.shape[0])[:N])]
    texts = []
    for i in range(N):
        own = slice(X.indptr[i], X.indptr[i + 1])
        bag = np.repeat(X.indices[own], X.data[own].astype(int))
        texts.append(" ".join(words[j] for j in rng.permutation(bag)))
    model, seconds = timed(lambda: tm.LatentDirichletAllocation(K).fit(X, feature_names=words))
    days = np.datetime64("2001-01-01") + rng.integers(0, 3650, N)
    explorer, more = timed(
        lambda: tm.explore(model, X, texts=texts, groups=rng.integers(1, 11, N), times=days)
    )
    explorer.save(path)
    print(
        f"fitted in {seconds:.1f} s, prepared in {more:.1f} s, {path.stat().st_size / 1e6:.0f} MB"
    )
    top = [word for j in range(10) for word in (row[j] for row in model.top_words(10))]
    return list(dict.fromkeys(top))[:WORDS]


def in_browser(url: str, words: list[str]) -> tuple[np.ndarray, list[float]]:
    """Milliseconds of each question (n, 2), and of the first paint of five visits."""
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=quiet)
        paints = []
        for _ in range(5):
            page = browser.new_context().new_page()
            page.goto(url)
            page.wait_for_selector("table.topics")
            paints.append(page.evaluate(PAINT))
        page.evaluate(ASK, words[0])
        found = []
        for word in words[1:]:
            page.wait_for_timeout(PAUSE)
            found.append(page.evaluate(ASK, word))
        browser.close()
    return np.array(found), paints


def memory(process: subprocess.Popen) -> float:
    """Anonymous memory of a process in MB; the mapped file is shared and not counted."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1e3


def asked(port: int, words: list[str]) -> list[tuple[int, str]]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found = []
    for word in words:
        line.request("GET", f"/api/search?q={quote(word)}")
        reply = line.getresponse()
        found.append((reply.status, reply.read().decode()))
    line.close()
    return found


def at_once(port: int, words: list[str], path: Path) -> tuple[float, int]:
    """Seconds of 1,000 questions of eight clients, and how many answers are not the library's."""
    explorer = tm.load(path)
    known = {word: answer(explorer, "search", {"q": word}) for word in words}
    each = [[words[(37 * c + i) % len(words)] for i in range(AT_ONCE // CLIENTS)]
            for c in range(CLIENTS)]  # fmt: skip
    with ThreadPoolExecutor(CLIENTS) as pool:
        replies, seconds = timed(lambda: list(pool.map(lambda own: asked(port, own), each)))
    wrong = sum(
        status != 200 or json.loads(text) != known[word]
        for own, some in zip(each, replies, strict=True)
        for word, (status, text) in zip(own, some, strict=True)
    )
    return seconds, wrong


def main() -> None:
    given = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reviews.tm"
        words = build(given.data, path)
        run = subprocess.Popen([sys.executable, "-c", SERVE, str(path)], stdout=subprocess.PIPE)
        port = int(run.stdout.readline())  # type: ignore[union-attr]
        time.sleep(1)
        found, paints = in_browser(f"http://127.0.0.1:{port}/", words)
        seconds, wrong = at_once(port, words, path)
        before = memory(run)
        many = [words[i % len(words)] for i in range(IN_A_ROW)]
        _, long = timed(lambda: [asked(port, many[i : i + 500]) for i in range(0, IN_A_ROW, 500)])
        after = memory(run)
        run.send_signal(signal.SIGTERM)
        run.wait(20)
    all_, own = found.T
    code = sum(os.path.getsize(tm.app.__path__[0] + f"/static/explorer.{kind}")
               for kind in ("js", "css"))  # fmt: skip
    rows = [
        ["question in the browser, median", f"{np.median(all_):.0f} ms", "50"],
        ["question in the browser, 99 of 100", f"{np.quantile(all_, 0.99):.0f} ms", "150"],
        ["of it the server's own, median", f"{np.median(own):.1f} ms", "10"],
        ["the server's own, 99 of 100", f"{np.quantile(own, 0.99):.1f} ms", ""],
        ["first paint, worst of five", f"{max(paints):.0f} ms", "500"],
        ["script and style sheet", f"{code / 1e3:.1f} kB", "60"],
        [f"{AT_ONCE:,} questions of {CLIENTS} clients", f"{seconds:.1f} s", ""],
        ["of them lost or wrong", str(wrong), "0"],
        [f"memory before and after {IN_A_ROW:,} more", f"{before:.0f} and {after:.0f} MB", "equal"],
        ["a question without a browser, mean", f"{1e3 * long / IN_A_ROW:.1f} ms", ""],
    ]
    note = f"{N:,} reviews of IMDb, {K} topics (`benchmarks/explorer.py`; two cores)."
    write_table("explorer", ["", "measured", "wanted, at most"], rows, note)


if __name__ == "__main__":
    main()
