"""Runs a script as two ranks with `torchrun`, each with its own lens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]


def launch(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs `explain` with some options in a folder, in which the script is `train.py`."""
    (folder / "train.py").write_text(script)
    command = [*_LAUNCH, "-m", "tensorlens", "explain", *options, "train.py"]
    temporary = folder / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "COLUMNS": "100"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert not list(temporary.glob("tensorlens-ranks-*")), ran.stderr
    return ran
