"""Checks the sentences about options of groups that no optimizer knows, or that are set in a copy of the groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.Adam([
    {"params": net[0].parameters(), "learning_rate": 1e-5},  #!
    {"params": net[2].parameters()},
], lr=0.01)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
RIGHT = {
    "an option that it knows": BODY.replace("learning_rate", "lr"),
    "a name": BODY.replace('"learning_rate": 1e-5', '"name": "first"'),
    "a note": BODY.replace('"learning_rate": 1e-5', '"depth": 1'),
    "read by a line": BODY + "print(opt.param_groups[0]['learning_rate'], end='')\n",
    "of a dict that is no group": BODY.replace(', "learning_rate": 1e-5', "")
    + 'info = {"params": 5, "learning_rate": 1e-5}\n',
    "of another dict": BODY.replace(', "learning_rate": 1e-5', "") + 'options = {"learning_rate": 1e-5}\n',
}
WORDS = "is no option of an optimizer"


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        BODY.replace("opt = torch.optim.Adam([", "groups = [").replace("], lr=0.01)", (
            "]\nopt = torch.optim.Adam(groups, lr=0.01)")),
        BODY.replace(', "learning_rate": 1e-5},  #!', "},").replace("for _", (
            'opt.add_param_group({"params": [nn.Parameter(torch.ones(1))], "learning_rate": 0.1})  #!\nfor _')),
    ],
    ids=["in the call", "in a list", "added later"],
)  # fmt: skip
def test_an_unknown_option_is_named(tmp_path: Path, body: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert found.text.startswith('`"learning_rate"` is no option')
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_other_options_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


SET = """\
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
def set_rate(rate):
    for group in opt.state_dict()["param_groups"]:
        group["lr"] = rate  #!
for step in range(4):
    set_rate(0.01 / (1 + step))
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
LOOP = SET[SET.index("    for group") : SET.index("for step")]
COPIES = {
    "in a loop": SET,
    "by its number": SET.replace(LOOP, "    opt.state_dict()['param_groups'][0]['lr'] = rate  #!\n"),
    "a variable for the state": SET.replace(LOOP, (
        "    state = opt.state_dict()\n    for i, group in enumerate(state['param_groups']):\n"
        "        group.update(lr=rate)  #!\n")),
    "another option": SET.replace('"lr"', '"weight_decay"'),
    "a deep copy": SET.replace(LOOP, (
        "    import copy\n    groups = copy.deepcopy(opt.param_groups)\n    groups[0]['lr'] *= 0.5  #!\n")),
}  # fmt: skip
NO_COPIES = {
    "the groups themselves": SET.replace('state_dict()["param_groups"]', "param_groups"),
    "loaded again": SET.replace(LOOP, (
        "    state = opt.state_dict()\n    state['param_groups'][0]['lr'] = rate\n    opt.load_state_dict(state)\n")),
    "returned": SET.replace(LOOP, (
        "    groups = opt.state_dict()['param_groups']\n    groups[0]['lr'] = 0.5\n    return groups\n")),
    "kept": SET.replace(LOOP, LOOP + "        kept.append(group)\n").replace("def set", "kept = []\ndef set"),
    "its groups loaded again": SET.replace(LOOP, (
        "    state = opt.state_dict()\n    for group in state['param_groups']:\n        group['weight_decay'] = 0.1\n"
        "    opt.load_state_dict({'state': state['state'], 'param_groups': state['param_groups']})\n")),
    "given to another optimizer": SET.replace(LOOP, (
        "    import copy\n    groups = copy.deepcopy(opt.param_groups)\n    groups[0]['weight_decay'] = 0.1\n"
        "    torch.optim.Adam([{**group, 'params': list(net.parameters())} for group in groups])\n")),
    "printed": SET.replace(LOOP, (
        "    shown = opt.state_dict()['param_groups'][0]\n    shown['lr'] = 0.1\n    print(shown, end='')\n")),
    "rounded to be shown": SET.replace(LOOP, (
        "    for group in opt.state_dict()['param_groups']:\n        group['lr'] = 0.1\n"
        "        print(group['weight_decay'], end='')\n")),
    "read again": SET.replace(LOOP, LOOP + "        print(group['lr'], end='')\n"),
    "a rate that is also set where steps read it": SET.replace(
        "    set_rate", "    opt.param_groups[0]['lr'] = 0.01 / (1 + step)\n    set_rate"
    ),
}  # fmt: skip
IN_COPY = "in a copy of the groups"


@pytest.mark.parametrize("name", COPIES)
def test_an_option_that_is_set_in_a_copy_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, COPIES[name]) if IN_COPY in each.text)
    assert found.labels[0].span.line == marked(COPIES[name])


@pytest.mark.parametrize("name", NO_COPIES)
def test_a_copy_that_something_uses_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, NO_COPIES[name]) if IN_COPY in each.text] == []
