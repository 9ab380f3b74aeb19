"""How many rows are enough for a glance, for a part, for a race: one place for all models."""

LOOK = 5_000  # bandwidths, landmarks, spread-out centres: what quantiles of the rows decide
PART = 20_000  # k-means of sequences, Gaussian helpers, rows kept for expectations
RACE = 40_000  # starts are compared on so many rows, and the best goes on with all
