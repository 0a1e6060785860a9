"""New priorities that a line writes to the first places of a table, not to those that were drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import numpy as np, torch
    x = torch.randn(40, 3)
    y = x.sum(1)
    net = torch.nn.Linear(3, 1)
    opt = torch.optim.Adam(net.parameters(), lr=0.1)
    class Memory:
        def __init__(self):
            self.priorities = {table}
        def sample(self, size):
            {draw}
            {returned}
        def update(self, places, error):
            {update}
    memory = Memory()
    for _ in range(4):
        {sample}
        error = net(x[places]).squeeze(1) - y[places]
        loss = error.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        {call}
"""
CALL = "memory.update(places, error.detach().abs())"
TORCH = (
    "torch.ones(40)",
    "idx = torch.multinomial(self.priorities, size)",
    "return idx, x[idx]",
    "places, _ = memory.sample(8)",
)
NUMPY = (
    "np.ones(40)",
    "p = self.priorities / self.priorities.sum(); idx = np.random.choice(40, size, p=p)",
    "return {'idx': torch.from_numpy(idx)}",
    "batch = memory.sample(8); places = batch['idx']",
)
FLAT = "memory.priorities[torch.arange(8)] = error.detach().abs()"
DRAWN = "places = torch.multinomial(memory.priorities, 8)"
WRONG = {
    "a slice": (TORCH, "self.priorities[: len(places)] = error", CALL),
    "numbers": (TORCH, "self.priorities[torch.arange(len(error))] = error + 1e-3", CALL),
    "one by one": (
        NUMPY,
        "for i, e in enumerate(error): self.priorities[i] = float(e)",
        CALL.replace("places", "batch['idx']"),
    ),
    "in a loop": ((*TORCH[:3], DRAWN), "pass", FLAT),
}
RIGHT = {
    "places": (TORCH, "self.priorities[places] = error", CALL),
    "one by one": (TORCH, "for i, e in zip(places, error): self.priorities[i] = float(e)", CALL),
    "by their number": (TORCH, "for i in range(len(places)): self.priorities[places[i]] = error[i]", CALL),
    "moved to the front": (
        (*TORCH[:3], f"{DRAWN}; memory.priorities = torch.cat([memory.priorities[places], torch.ones(32)])"),
        "pass",
        FLAT,
    ),
    "moved to the front in place": (
        (*TORCH[:3], f"{DRAWN}; memory.priorities[:] = memory.priorities[places.repeat(5)]"),
        "pass",
        FLAT,
    ),
    "all": ((*TORCH[:3], DRAWN), "pass", "memory.priorities[:40] = (net(x).squeeze(1) - y).detach().abs()"),
    "as many as there are": ((*TORCH[:3], DRAWN.replace("8", "40, True")), "pass", FLAT.replace("8", "40")),
    "as many as there are, in NumPy": (
        (*NUMPY[:3], NUMPY[3].replace("8", "40")),
        "for i, e in enumerate(error): self.priorities[i] = float(e)",
        CALL.replace("places", "batch['idx']"),
    ),
    "a first value": (TORCH, "self.priorities[places] = error; self.priorities[:2] = 1.0", CALL),
}


def _script(name: str, cases: Mapping[str, tuple[tuple[str, ...], str, str]]) -> str:
    (table, draw, returned, sample), update, call = cases[name]
    return SCRIPT.format(table=table, draw=draw, returned=returned, sample=sample, update=update, call=call)


@pytest.mark.parametrize("name", WRONG)
def test_priorities_at_the_first_places_are_named(tmp_path: Path, name: str) -> None:
    found, _ = said(tmp_path, _script(name, WRONG), "writes to the first places of a table")
    assert len(found) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_priorities_at_the_places_drawn_are_not(tmp_path: Path, name: str) -> None:
    assert not said(tmp_path, _script(name, RIGHT), "writes to the first places of a table")[0]
