"""Launches taken down while the user's own command runs."""
