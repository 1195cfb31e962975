"""Triton to Triton: what Gluon has no word for is written in words that it has, before any analysis."""
