"""How results are told: one JSON document for machines, tables and lines for people."""
