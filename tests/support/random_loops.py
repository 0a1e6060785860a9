"""Writes random programs of nested loops and helpers, which note down which iteration and call each op belongs to."""

from __future__ import annotations

import random

_HEAD = """\
import torch
x = torch.ones(2)
LAYER = torch.nn.Sequential(torch.nn.Tanh())
TWICE = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Tanh())
LOG = []
"""
OPS = ("Tensor.sub", "Tensor.add", "torch.tanh")


class LoopProgram:
    """One random program. When it ran, `LOG` has a tuple for each op: its line, its iteration, the number
    and the caller's line of the call of its function, and how many events it makes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines = _HEAD.splitlines()
        self._variables = 0
        names = [f"helper{number}" for number in range(self._random.randint(1, 2))]
        for number, name in enumerate(names):
            if self._random.random() < 0.3:
                self._add(0, "@torch.no_grad()")
            self._add(0, f"def {name}(outer, line):")
            self._add(1, "global LOG")
            self._add(1, f"{name}.calls += 1")
            self._block(1, "outer", name, names[:number], depth=0)
            self._add(0, f"{name}.calls = 0")
        self._block(0, "None", "", names, depth=0)
        self._add(0, "print(LOG)")

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _add(self, level: int, line: str) -> None:
        self._lines.append("    " * level + line)

    def _block(self, level: int, iteration: str, name: str, helpers: list[str], depth: int) -> None:
        """Writes some statements. `iteration` is the expression for the number of the iteration that they belong to."""
        for _ in range(self._random.randint(1, 4)):
            self._statement(level, iteration, name, helpers, depth)
        if self._lines[-1].endswith(":"):
            self._add(level, "pass")

    def _statement(self, level: int, iteration: str, name: str, helpers: list[str], depth: int) -> None:
        kinds = [
            "op",
            "op",
            "nested",
            "layer",
            "twice",
            "call",
            "call",
            "loop",
            "loop",
            "while",
            "if",
            "with",
            "try",
            "jump",
        ]
        kind = self._random.choice(kinds if depth < (1 if name else 2) else ["op", "layer", "call"])
        if kind == "op":
            self._op(level, iteration, name, "x.sub(2)")
        elif kind == "nested":
            self._op(level, iteration, name, "x.abs().add(x.exp())")
        elif kind == "layer":
            self._op(level, iteration, name, "LAYER(x)")
        elif kind == "twice":
            self._op(level, iteration, name, "TWICE(x)", 2)
        elif kind == "call" and helpers:
            self._add(level, f"{self._random.choice(helpers)}({iteration}, {len(self._lines) + 1})")
        elif kind == "loop":
            self._variables += 1
            variable = f"i{self._variables}"
            self._add(level, f"for {variable} in range(1, {self._random.randint(2, 5)}):")
            self._block(level + 1, variable, name, helpers, depth + 1)
        elif kind == "while":
            self._variables += 1
            variable = f"i{self._variables}"
            self._add(level, f"{variable} = 0")
            self._add(level, f"while x.mul({variable}).sum() < {self._random.randint(2, 8)}:")
            self._add(level + 1, f"{variable} += 1")
            self._block(level + 1, variable, name, helpers, depth + 1)
        elif kind == "if":
            self._add(level, f"if len(LOG) % {self._random.randint(2, 4)}:")
            self._block(level + 1, iteration, name, helpers, depth + 1)
        elif kind == "with":
            self._add(level, "with torch.no_grad():")
            self._block(level + 1, iteration, name, helpers, depth + 1)
        elif kind == "try":
            self._add(level, "try:")
            self._block(level + 1, iteration, name, helpers, depth + 1)
            self._add(level + 1, f"if len(LOG) % {self._random.randint(2, 4)} == 0: raise ValueError")
            self._add(level, "except ValueError:")
            self._add(level + 1, "pass")
        elif kind == "jump":
            in_loop = iteration.startswith("i")
            jumps = (["continue", "break"] if in_loop else []) + (["return"] if name else [])
            if jumps:
                self._add(level, f"if len(LOG) % {self._random.randint(2, 5)} == 0: {self._random.choice(jumps)}")

    def _op(self, level: int, iteration: str, name: str, op: str, calls: int = 1) -> None:
        line, called = len(self._lines) + 2, f"({name}.calls, line)" if name else "(0, 0)"
        self._add(level, f"LOG += [({line}, {iteration}, {called}, {calls})]")
        self._add(level, f"y = {op}")
