"""Checks the sentence about tensors that are made again from the values of another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
import numpy
cell, head = nn.GRUCell(1, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
for _ in range(3):
    x, goal, state, outs = torch.randn(8, 1), torch.randn(8, 3), torch.zeros(8, 4), []
    for step in range(3):
        state = cell(x, state)
        out = head(state)
        outs.append(out)
NEXT
    loss = (torch.cat(outs, 1) - goal).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a list": "        x = torch.tensor(out.tolist())  #!",
    "an array": "        x = torch.from_numpy(out.detach().numpy())  #!",
    "a flipped array": "        x = torch.as_tensor(numpy.flip(out.detach().numpy(), axis=0).copy())  #!",
    "numbers": "        x = torch.tensor([each.item() for each in out]).unsqueeze(1)  #!",
    "joined to others": "        x = torch.as_tensor(out.data.numpy().copy())  #!\n        x = torch.cat([x, x])[:8]",
    "an addition": "        outs[-1] = out + torch.tensor(out.pow(2).tolist())  #!",
}
RIGHT = {
    "the tensor itself": "        x = out",
    "a tensor without a graph": "        x = out.detach()",
    "data": "        x = torch.tensor(goal[:, :1].tolist())",
    "a weight": "        outs[-1] = out * torch.tensor(out.abs().tolist())",
    "chosen from a copy": "        x = torch.tensor((out > 0).float().tolist())",
    "chosen by a value": "        x = torch.tensor([[1.0 if each.item() > 0 else 0.0] for each in out])",
    "counted by a value": "        x = torch.tensor([[float(n)] for n in range(int(out.abs().sum().item()) * 0 + 8)])",
    "the next state of a simulation": "        world = lambda action: 0.9 * x.numpy() + 0.1 * action.clip(-1, 1)\n"
    "        x = torch.as_tensor(world(out.detach().numpy()))",
    "made by the head of a loop": (
        "        class Rows(torch.utils.data.Dataset):\n            __len__ = lambda self: 16\n"
        "            __getitem__ = lambda self, i: numpy.ones(1, dtype=numpy.float32)[0]\n"
        "        for x in torch.utils.data.DataLoader(Rows(), batch_size=8):\n"
        "            x = x[:, None]\n            outs[-1], shown = head(cell(x, state)), out.sum().item()"
    ),
    "only shown": "        print(torch.tensor(out.tolist()).mean().item(), end='')",
}
WORDS = "makes a new tensor of the values of"


def body(name: str) -> str:
    return BODY.replace("NEXT", {**WRONG, **RIGHT}[name])


@pytest.mark.parametrize("name", WRONG)
def test_a_tensor_that_is_made_again_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body(name)) if WORDS in each.text)
    assert "is computed from `cell.weight_ih`, `cell.weight_hh`, `cell.bias_ih`" in found.text
    assert found.labels[0].span.line == marked(body(name))


@pytest.mark.parametrize("name", RIGHT)
def test_other_tensors_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, body(name)) if WORDS in each.text] == []
