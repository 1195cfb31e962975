"""The report of a port as a page, in HTML, Markdown and JSON: made of results and texts alone, with nothing run."""
