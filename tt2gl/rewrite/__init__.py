"""Edits files as a plan says; never decides. One rule a file; `file` applies them all."""
