"""Estimators, one folder a family."""
