"""Compiles `tensorlens/tracer/recording/_fast_path.c` when the project is installed or a wheel of it is built.

Where that fails, for want of a compiler or of Python's headers, the lens is installed without it and does the same in
Python.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.errors import BaseError, CCompilerError

SOURCE = "tensorlens/tracer/recording/_fast_path.c"


class CompiledFastPath(BuildHookInterface[Any]):
    """The build hook that pyproject.toml names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if self.target_name != "wheel" or os.environ.get("TENSORLENS_PURE_PYTHON"):
            return
        try:
            built = compile_in(Path(self.root))
        except (BaseError, CCompilerError, OSError) as error:
            self.app.display_warning(f"{SOURCE} was not compiled, the lens will do the same in Python: {error}")
            return
        build_data["artifacts"].append(built)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def compile_in(root: Path) -> str:
    """Compile the source next to itself; the path of the result from `root`."""
    text = (root / SOURCE).read_bytes()
    extension = Extension(
        "tensorlens.tracer.recording._fast_path",
        [SOURCE],
        define_macros=[("SOURCE", f'"{hashlib.sha256(text).hexdigest()}"')],
    )
    with chdir(root), tempfile.TemporaryDirectory() as scratch:
        command: Any = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = ".", scratch
        command.ensure_finalized()
        command.run()
    return str(Path(SOURCE).with_suffix(sysconfig.get_config_var("EXT_SUFFIX")))


if __name__ == "__main__":
    print(compile_in(Path(__file__).parent))
