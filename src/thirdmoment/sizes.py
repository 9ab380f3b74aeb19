"""How many rows are enough for a glance, for a part, for a race: one place for all models."""

from thirdmoment._constants import Choice

# Bandwidths, landmarks, spread-out centres: what quantiles of the rows decide.
LOOK: Choice[int] = 5_000
PART: Choice[int] = 20_000  # k-means of sequences, Gaussian helpers, rows kept for expectations
RACE: Choice[int] = 40_000  # starts are compared on so many rows, and the best goes on with all
