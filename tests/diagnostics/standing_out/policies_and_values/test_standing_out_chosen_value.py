"""Targets that pick values by the places of the greatest of the same values."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import copy, torch
    {said}
    online = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    target = copy.deepcopy(online)
    opt = torch.optim.SGD(online.parameters(), lr=0.1)
    x, x2, a, r = torch.randn(16, 3), torch.randn(16, 3), torch.randint(0, 2, (16, 1)), torch.randn(16, 1)
    for _ in range(3):
        with torch.no_grad():
            {choice}
            y = r + 0.9 * {value}
        loss = (online(x).gather(1, a) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    target.load_state_dict(online.state_dict())
"""
PICKED = "target(x2).gather(1, best)"
DOUBLE = 'print("double Q-learning")'
ONE_CALL = ("q = target(x2); best = q.argmax(1).unsqueeze(1)", "q.gather(1, best)")
TWO_CALLS = ("best = target(x2).argmax(1, keepdim=True)", PICKED)
OPTION = "q = target(x2); best = (online(x2) if double_dqn else q).argmax(1, keepdim=True)"
WRONG = {
    "two calls": (DOUBLE, *TWO_CALLS),
    "by max": (
        "use_double_q = True",
        "best = target(x2).max(1)[1][:, None]",
        "torch.take_along_dim(target(x2), best, 1)",
    ),
    "one call": (DOUBLE, *ONE_CALL),
}
RIGHT = {
    "two networks": (DOUBLE, "best = online(x2).argmax(1, keepdim=True)", PICKED),
    "a maximum": (DOUBLE, "best = 0", "target(x2).max(1, keepdim=True).values"),
    "one call": ("a = torch.ones(1).double()", *ONE_CALL),
    "a comment": ("# no double Q-learning", *ONE_CALL),
    "two calls": ("", *TWO_CALLS),
    "an option": ("double_dqn = False", OPTION, "q.gather(1, best)"),
    "a branch": (
        "which = 'double DQN'.split()[-1]",
        """q = target(x2)
            if which == "both":
                best = online(x2).argmax(1, keepdim=True)
            else:
                best = q.argmax(1, keepdim=True)""",
        "q.gather(1, best)",
    ),
    "two critics": (
        DOUBLE,
        "q = target(x2); best = q.argmax(1, keepdim=True)",
        "torch.min(q.gather(1, best), online(x2).gather(1, best))",
    ),
    "the smaller of two critics": (
        DOUBLE,
        "q = torch.min(target(x2), online(x2)); best = q.argmax(1, keepdim=True)",
        "q.gather(1, best)",
    ),
    "another state": (DOUBLE, "best = target(x).argmax(1, keepdim=True)", PICKED),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_choice_by_the_same_values_is_named(kind: str, tmp_path: Path) -> None:
    line, choice, value = WRONG[kind]
    [found], _ = said(tmp_path, SCRIPT.format(said=line, choice=choice, value=value), "picks the greatest")
    assert found.labels[0].span.line == 12


@pytest.mark.parametrize("kind", RIGHT)
def test_a_choice_by_another_network_is_no_news(kind: str, tmp_path: Path) -> None:
    line, choice, value = RIGHT[kind]
    script = SCRIPT.format(said=line, choice=choice, value=value)
    assert said(tmp_path, script, "picks the greatest")[0] == []
