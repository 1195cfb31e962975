"""Launches from a file alone: what it says of them, and guesses from names and use for the rest."""
