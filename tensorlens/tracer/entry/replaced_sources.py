"""Gives files of the program another text for one run. The files themselves stay as they are."""

from __future__ import annotations

import importlib.machinery
import linecache
from collections.abc import Mapping
from pathlib import Path

from tensorlens.tracer.recording.recorder import Recorder

_Loader = importlib.machinery.SourceFileLoader


def replace_sources(sources: Mapping[str, str], recorder: Recorder) -> None:
    """Makes imports, tracebacks and the recording read `sources[file]` in place of each file, until the process ends.

    Cached bytecode of such a file is not used, and none is written.
    """
    texts = {file: Path(copy).read_bytes() for file, copy in sources.items()}
    for file, data in texts.items():
        text = data.decode("utf-8", "surrogatepass")
        recorder.sites.remember(file, text)
        linecache.cache[file] = (len(data), None, text.splitlines(keepends=True), file)
    get_data, path_stats = _Loader.get_data, _Loader.path_stats

    def replaced_data(loader: _Loader, path: str) -> bytes:
        return texts[path] if path in texts else get_data(loader, path)

    def replaced_stats(loader: _Loader, path: str) -> Mapping[str, object]:
        if path in texts:
            raise OSError
        return path_stats(loader, path)

    _Loader.get_data, _Loader.path_stats = replaced_data, replaced_stats  # type: ignore[method-assign,assignment]
