"""`tt2gl explain`: why a line of a kernel, or of its port, became what it is."""
