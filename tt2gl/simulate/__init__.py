"""Runs the IR of kernels in numpy: any target, no GPU. Knows `ir` and nothing of Triton."""
