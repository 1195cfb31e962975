"""Reads kernels and decides: types, memory facts, layouts. Never edits."""
