"""A whole folder ported: every file, for every target, in the order that suits and with one result."""
