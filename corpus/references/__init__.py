"""What every kernel of the corpus computes, in torch, in double precision.

A reference takes a launch's arguments as they were before the kernel ran (tensors and scalars by parameter name,
outputs with what they held) and its constexprs, and returns the expected contents of each tensor that the kernel
writes, whole: what the kernel leaves alone keeps what it held.
"""

import importlib
import pkgutil

from corpus.references.base import REFERENCES as REFERENCES
from corpus.references.base import tolerance as tolerance

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
