"""States the version of the package; it is the same as in `pyproject.toml`."""

__version__ = "0.1.0"
