"""A kernel on its own: it, what it reaches, and nothing else, in private modules for Triton's frontend."""
