"""Exact laws of small models: every document, window, row or value with its probability."""
