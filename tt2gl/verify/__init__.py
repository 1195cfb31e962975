"""Proof that a port equals its original: compiled, measured side by side, and run on a GPU."""
