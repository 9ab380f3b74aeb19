"""
Vowels and consonants from letters alone
========================================

A hidden Markov model with two states, shown nothing but a stream of letters, finds vowels and
consonants: vowels follow consonants and the other way round. The text is that of the docstrings of
NumPy and SciPy on this machine.
"""

# %%
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.stats
from matplotlib import pyplot as plt

import thirdmoment as tm

ALPHABET = " abcdefghijklmnopqrstuvwxyz"


def letters(text):
    """Letters a to z and single blanks as numbers 0 to 26."""
    plain = "".join(c if c in ALPHABET else " " for c in text.lower())
    return np.array([ALPHABET.index(c) for c in " ".join(plain.split())], dtype=int)


modules = (np, np.linalg, scipy.linalg, scipy.optimize, scipy.stats)
texts = [getattr(m, name).__doc__ or "" for m in modules for name in sorted(dir(m))]
sequences = [codes for codes in map(letters, dict.fromkeys(texts)) if len(codes) >= 200]
X = np.concatenate(sequences)[:, None]
lengths = [len(codes) for codes in sequences]
print(f"{len(X)} letters in {len(lengths)} texts")

# %%
# One call; several starts race on a part of the letters, since text is no hidden Markov model, and
# the report says which won.
model = tm.CategoricalHMM(n_components=2).fit(X, lengths=lengths)
print(model.report_)
print("transitions", model.transmat_.round(2).tolist())

# %%
# How much more a letter belongs to the one state than to the other:
odds = np.log(model.emissionprob_[0] / model.emissionprob_[1]).clip(-6, 6)
order = np.argsort(odds)
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
vowel = np.isin(order, [ALPHABET.index(c) for c in "aeiou"])
ax.bar(range(27), odds[order], color=np.where(vowel, "C1", "C0"))
ax.set_xticks(range(27), [ALPHABET[i].replace(" ", "␣") for i in order])
ax.axhline(0, color="0.3", lw=0.8)
ax.set(ylabel="log odds of the two states", title="Vowels in orange; ␣ is the blank")
_ = ax.spines[["top", "right"]].set_visible(False)
