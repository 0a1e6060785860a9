"""A long program that is wide: CALLS calls on 100,000 lines in 10,000 functions, with 100,000 live tensors.

`long_record.py` runs it. It writes the number of its calls to the file PROGRESS, and its modules beside that file.
"""

import importlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import torch

FUNCTIONS, LINES, MODULES = 10_000, 10, 20  # lines of each function
PORTION = 10_000  # calls between two notes of the progress
_LINES = """
    a = x * 2
    b = a + y
    c = b.sin()
    d = c - a
    e = d.relu()
    f = e * y
    g = f.sum()
    h = torch.exp(y)
    i = h - y
    j = i * 0.5
    return a, b, c, d, e, f, g, h, i, j
"""
Function = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, ...]]


def made(folder: Path) -> list[ModuleType]:
    """Writes the modules and imports them."""
    sys.path.insert(0, str(folder))
    numbers = range(FUNCTIONS // MODULES)
    for module in range(MODULES):
        functions = "".join(f"\n\ndef function_{module}_{number}(x, y):{_LINES}" for number in numbers)
        (folder / f"wide_{module}.py").write_text(f"import torch\n{functions}")
    return [importlib.import_module(f"wide_{module}") for module in range(MODULES)]


def functions_of(modules: list[ModuleType]) -> Iterator[Function]:
    for module in modules:
        yield from (each for name, each in vars(module).items() if name.startswith("function_"))


def main(calls: int, progress: Path) -> None:
    functions = list(functions_of(made(progress.parent)))
    x, y = torch.ones(4, requires_grad=True), torch.ones(4)
    live: list[torch.Tensor | None] = [None] * (FUNCTIONS * LINES)
    note = os.open(progress, os.O_WRONLY | os.O_CREAT)
    os.pwrite(note, b"%12d %9d\n" % (0, os.getpid()), 0)
    for done in itertools.count(0, LINES):
        number = done // LINES % FUNCTIONS
        if done % PORTION == 0 or done >= calls:
            os.pwrite(note, b"%12d %9d\n" % (done, os.getpid()), 0)
            if done >= calls:
                return
        live[LINES * number : LINES * (number + 1)] = functions[number](x, y)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
