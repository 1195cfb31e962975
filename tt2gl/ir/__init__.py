"""MLIR text, as Triton prints it in generic form, as plain Python objects."""
