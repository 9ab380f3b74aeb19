"""Data -> starts: parameters to climb from, how far they are trusted, and what else to try."""
