"""Writes a lesson for a user to start from: `tensorlens new lesson.py`. Imports no torch."""

from __future__ import annotations

from pathlib import Path

from tensorlens.errors import UsageError
from tensorlens.paths import is_folder

STARTER = '''\
"""A first lesson: what backward adds up

The first line is the title. The lines below it say what the lesson shows. The script is plain Python, and runs without
tensorlens too.
"""

import torch

a = torch.tensor([1.0, 2.0], requires_grad=True)
b = a.detach()
# A comment that begins with "#:" is a claim: an expression that has to be true here, below the code it is about.
#: b.data_ptr() == a.data_ptr()

(a * 3).sum().backward()
#: a.grad.tolist() == [3.0, 3.0]
# "refuted:" marks what one might believe, but is false.
#: refuted: b.grad is not None

for step in range(2):
    (a * 3).sum().backward()
    # In a loop, a claim must hold in every iteration.
    #: a.grad[0] == 3.0 * (step + 2)

# "raises" announces the error that ends the lesson, and a part of its message. Without it, an error is a failure.
b.sum().backward()
#: raises RuntimeError: does not require grad
'''


def write_starter(path: Path) -> None:
    """Writes a commented lesson that runs.

    Raises:
        UsageError: the file exists, is not named like a script, or can't be written.
    """
    if path.suffix != ".py":
        raise UsageError(f"a lesson is a Python script: give it a name such as {path.name or 'lesson'}.py")
    if not is_folder(path.parent):
        raise UsageError(f"can't write {path}: there is no folder {path.parent}")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(STARTER)
    except FileExistsError:
        raise UsageError(f"{path} exists already, and is left as it is") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"can't write {path}: {getattr(error, 'strerror', None) or error}") from None
