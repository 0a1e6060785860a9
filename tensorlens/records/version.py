"""The version of the package, as `pyproject.toml` states it."""

__version__ = "0.1.0"
