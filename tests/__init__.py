"""Tests; helpers are imported as `tests.exact` and `tests.fuzz`."""
