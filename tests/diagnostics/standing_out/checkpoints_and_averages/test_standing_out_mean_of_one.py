"""Checks the sentence about a mean of models that are one model."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
import copy

def client(net, x):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for part in x.split(8):
        opt.zero_grad()
        net(part).square().mean().backward()
        opt.step()
    return net

net = nn.Linear(4, 2)
for _ in range(3):
    clients = [client(net, torch.randn(16, 4)) for _ in range(3)]
    with torch.no_grad():
        for p, *others in zip(net.parameters(), *(each.parameters() for each in clients)):
            p.copy_(torch.stack(others).mean(0))  #!
"""
WRONG = {
    "parameters": NET,
    "detached": NET.replace("stack(others)", "stack([each.detach() for each in others])"),
}
RIGHT = {
    "copies": NET.replace("client(net, t", "client(copy.deepcopy(net), t"),
    "one client": NET.replace("for _ in range(3)]", "for _ in range(1)]"),
    "a batch of one parameter": NET.replace(
        "p.copy_(torch.stack(others).mean(0))", "print(torch.stack(others).mean())"),
}  # fmt: skip
WORDS = "stacks one and the same parameter"


@pytest.mark.parametrize("name", WRONG)
def test_a_mean_of_one_model_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_mean_of_copies_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
