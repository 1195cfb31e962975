"""`tt2gl check`: what kernels compile to, held against `tt2gl.lock`."""
