"""Host code read, never run: where names are bound, what they are, and what the target answers."""
