"""What every kernel of the corpus computes, in torch, in double precision.

A reference takes a launch's arguments as they were before the kernel ran (tensors and scalars by parameter name,
outputs with what they held) and its constexprs, and returns the expected contents of each tensor that the kernel
writes, whole: what the kernel leaves alone keeps what it held.
"""

from corpus.references import rows as rows
from corpus.references.base import REFERENCES as REFERENCES
from corpus.references.base import tolerance as tolerance
