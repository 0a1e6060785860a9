"""Checks the sentence about a forward hook that detaches the results of a trained module."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
teacher = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).requires_grad_(False)
student = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
adapter = nn.Linear(6, 6)
kept = {}
def keep(name):
    def hook(module, args, out):
        kept[name] = out.detach()  #!
    return hook
teacher[1].register_forward_hook(keep("teacher"))
student[1].register_forward_hook(keep("student"))
opt = torch.optim.SGD([*student.parameters(), *adapter.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    loss = (student(x) - teacher(x)).square().mean()
    loss = loss + (adapter(kept["student"]) - kept["teacher"]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
RIGHT = {
    "the result itself": BODY.replace("out.detach()  #!", "out"),
    "of a student alone": BODY.replace('teacher[1].register_forward_hook(keep("teacher"))\n', "").replace(
        ' - kept["teacher"]', ""),
    "kept and not used": BODY.replace(
        '(adapter(kept["student"]) - kept["teacher"]).square()', 'adapter(x @ torch.ones(4, 6)).square()'),
}  # fmt: skip
TAPS = """\
stem, adapter, head = (nn.Linear(4, 4) for _ in range(3))
stem.requires_grad_(False)
def tap(module, args, out):
    kept = out.detach()  #!
    return kept
for part in (stem, adapter):
    part.register_forward_hook(tap)
opt = torch.optim.SGD([*adapter.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    loss = head(adapter(stem(torch.randn(8, 4))).tanh()).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
RIGHT |= {
    "only kept": TAPS.replace("    return kept\n", ""),
    "only the frozen one": TAPS.replace("return kept", "return kept if module is stem else out"),
}
WORDS = "of a forward hook detaches what is computed from"


@pytest.mark.parametrize("text", [BODY, BODY.replace("out.detach()", "out.data")])
def test_a_hook_that_detaches_both_is_named(tmp_path: Path, text: str) -> None:
    (found,) = (each for each in sentences(tmp_path, text) if WORDS in each.text)
    assert "computed from `student[0].weight` and `student[0].bias`, not only" in found.text
    assert found.labels[0].span.line == marked(text)


@pytest.mark.parametrize("name", RIGHT)
def test_other_hooks_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


@pytest.mark.parametrize("value", ["out.detach()", "out.detach().clone()", "out.data"])
def test_a_hook_that_takes_the_only_gradient_is_named(tmp_path: Path, value: str) -> None:
    text = TAPS.replace("out.detach()", value)
    (found,) = (each for each in sentences(tmp_path, text) if WORDS in each.text)
    assert "is computed from `adapter.weight` and `adapter.bias`, not only" in found.text
    assert found.labels[0].span.line == marked(text)
