"""tt2gl: lift Triton kernels into explicit Gluon."""

__version__ = "0.1.0"
