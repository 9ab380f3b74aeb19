"""A small corpus of four themes with hostile texts in it, and its explorer."""

from __future__ import annotations

import datetime
import functools

import numpy as np

import thirdmoment as tm

THEMES = {
    "sea": "ship sail captain whale ocean harbour anchor wave mast sailor deck storm voyage island "
    "coast tide crew boat reef cargo",
    "kitchen": "bread oven flour butter recipe sugar salt pepper onion garlic soup kettle spoon "
    "cheese dough stew basil roast pan taste",
    "court": "judge jury lawyer trial verdict witness appeal evidence statute guilty plea bench "
    "sentence clerk crime motion hearing oath ruling justice",
    "stars": "galaxy planet orbit telescope comet nebula moon eclipse asteroid gravity cosmos "
    "meteor rocket solar lunar star astronomer crater mars spectrum",
}
SCRIPT = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
HOSTILE = {
    "</script><b>id": f"{SCRIPT} ship sail captain whale {SCRIPT} ocean harbour anchor wave mast",
    "rtl": "\u202egnalas\u202c שלום עולם galaxy planet orbit telescope comet nebula moon eclipse",
    "emoji": "🐳👩‍👧 bread oven flour butter recipe sugar salt pepper onion 🍞 soup\x00kettle",
    "million": "judge jury lawyer trial verdict " + "x" * 1_000_000 + " witness appeal evidence",
}


@functools.cache
def corpus(n: int = 600) -> tm.text.TextCorpus:
    """Documents of two themes each, of years that prefer a theme, and the hostile ones."""
    rng = np.random.default_rng(0)
    names, words = list(THEMES), [text.split() for text in THEMES.values()]
    rows = []
    for i in range(n):
        main, other = rng.permutation(len(names))[:2]
        pick = [words[main if rng.random() < 0.8 else other] for _ in range(40)]
        text = " ".join(one[int(len(one) * rng.random() ** 1.5)] for one in pick)
        when = datetime.date(2000 + 5 * int(main) + int(rng.integers(5)), 1 + i % 12, 1)
        rows.append({"text": text + ".", "group": names[main], "time": when, "id": f"letter {i}"})
    for name, text in HOSTILE.items():
        rows.append({"text": text, "group": SCRIPT, "time": datetime.date(1999, 1, 1), "id": name})
    return tm.text.read(
        lambda: iter(rows), text="text", group="group", time="time", id="id", max_share=0.9
    )


@functools.cache
def fitted() -> tm.LatentDirichletAllocation:
    return tm.LatentDirichletAllocation(4).fit(corpus())


def explorer() -> tm.Explorer:
    """A new one, for tests that change it."""
    return tm.explore(fitted(), corpus(), title="Letters & <tales>")
