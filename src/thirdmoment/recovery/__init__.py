"""Parameters from a decomposition, shared by models."""
