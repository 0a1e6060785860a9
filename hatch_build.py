"""Compiles the C files of the project when it is installed or a wheel of it is built.

If that fails, because the compiler or Python's headers are missing, the lens is installed without them and does the
same in Python.
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

SOURCES = (
    "tensorlens/tracer/recording/_fast_path.c",
    "tensorlens/journal/_compact_calls.c",
    "tensorlens/records/_record_maker.c",
)


class CompiledFastPath(BuildHookInterface[Any]):
    """The build hook that pyproject.toml names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if self.target_name != "wheel" or os.environ.get("TENSORLENS_PURE_PYTHON"):
            return
        try:
            built = [compile_in(Path(self.root), source) for source in SOURCES]
        except (BaseError, CCompilerError, OSError) as error:
            self.app.display_warning(
                f"{', '.join(SOURCES)} were not compiled, the lens will do the same in Python: {error}"
            )
            return
        build_data["artifacts"].extend(built)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def compile_in(root: Path, source: str) -> str:
    """Compiles a source next to itself. Returns the path of the result, relative to `root`."""
    included = included_in(root, source)
    text = b"".join((root / path).read_bytes() for path in (source, *included))
    extension = Extension(
        source.removesuffix(".c").replace("/", "."),
        [source],
        depends=included,  # else a library that is newer than `source` is kept
        define_macros=[("SOURCE", f'"{hashlib.sha256(text).hexdigest()}"')],
        # else a missing function only shows when the module is loaded, and the lens does without it
        extra_compile_args=["-Werror=implicit-function-declaration"] if os.name == "posix" else [],
    )
    with chdir(root), tempfile.TemporaryDirectory() as scratch:
        command: Any = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = ".", scratch
        command.ensure_finalized()
        command.run()
    return str(Path(source).with_suffix(sysconfig.get_config_var("EXT_SUFFIX")))


def included_in(root: Path, source: str) -> list[str]:
    """Returns the files that a source includes, relative to `root`: of `_name.c`, those in the folder `name_c`."""
    folder = Path(source).with_name(Path(source).stem.removeprefix("_") + "_c")
    return [(folder / path.name).as_posix() for path in sorted((root / folder).glob("*.h"))]


if __name__ == "__main__":
    print(*(compile_in(Path(__file__).parent, source) for source in SOURCES), sep="\n")
