"""Checks the sentence about lines that add to the items of a `state_dict()` that is no copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
import copy
nets = [nn.Linear(4, 1) for _ in range(3)]
for net in nets:
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
average = nets[0].state_dict()
for net in nets[1:]:
    for key, value in net.state_dict().items():
        average[key] += value  #!
print(nets[0](torch.ones(1, 4)).shape, end="")
"""
RIGHT = {
    "a copy": BODY.replace("nets[0].state_dict()", "copy.deepcopy(nets[0].state_dict())"),
    "new tensors": BODY.replace("nets[0].state_dict()", "{k: v.clone() for k, v in nets[0].state_dict().items()}"),
    "not in place": BODY.replace("average[key] += value", "average[key] = average[key] + value"),
    "of a model that nothing trains": BODY.replace("nets[0].state_dict()", "nn.Linear(4, 1).state_dict()"),
}
WORDS = "is no copy"


def test_a_state_dict_that_is_added_to_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, BODY) if WORDS in each.text)
    assert found.text.startswith("`average[key] += value` changes `net.weight` and `net.bias`: `nets[0].state_dict()`")
    assert found.labels[0].span.line == marked(BODY)


@pytest.mark.parametrize("name", RIGHT)
def test_other_state_dicts_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
