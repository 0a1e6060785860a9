"""Checks the sentence about clipped ratios of probabilities."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NETS = """\
from torch.distributions import Categorical
actor, critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)), nn.Linear(4, 1)
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=0.01)

def learn(x, action, old, gain):
    new = Categorical(logits=actor(x)).log_prob(action)
    value = critic(x).squeeze(-1)
    advantage = (gain - value).detach()
    ratio = torch.exp(new - old)  #!
    policy = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    loss = policy + 0.5 * (value - gain).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

"""
STORED = """\
for _ in range(3):
    with torch.no_grad():
        x, gain = torch.randn(32, 4), torch.randn(32)
        dist = Categorical(logits=actor(x))
        action = dist.sample()
        old = dist.log_prob(action)
    for _ in range(3):
        learn(x, action, old, gain)
"""
ONCE = STORED.replace("    for _ in range(3):\n        learn", "    learn")
OLD_GRAPH = ONCE.replace("    with torch.no_grad():\n", "    if True:\n")
IN_CLASS = (
    NETS.replace("new - old", "new - rollout.old").replace("action, old, gain", "action, rollout, gain")
    + """\
class Rollout:
    def __init__(self, x, action):
        self.x, self.action = x, action

    @property
    def old(self):
        return self.log_prob().detach()

    def log_prob(self):
        return Categorical(logits=actor(self.x)).log_prob(self.action)

"""
)
FUNCTIONAL = (
    NETS.replace("    ratio", "    with torch.no_grad():\n        logits = functional_call(actor, behaviour, (x,))\n"
             "        old = Categorical(logits=logits).log_prob(action)\n    ratio", 1)
    + "from torch.func import functional_call\n"
    + STORED.replace("for _ in range(3):", "for _ in range(3):\n    behaviour = actor.state_dict()", 1)
)  # fmt: skip
WRONG = {
    "stored with its graph": NETS + OLD_GRAPH,
    "parts of what is stored": NETS + OLD_GRAPH.replace("    learn(x, action, old, gain)", (
        "    i = torch.randperm(32)[:16]\n    learn(x[i], action[i], old[i], gain[i])")),
    "by another name": (NETS + OLD_GRAPH.replace("    learn(x, action, old, gain)", (
        "    i = torch.randperm(32)[:16]\n    learn(x[i], action[i], old[i], gain[i])"))).replace("old", "logp"),
    "stacked with its graph": NETS + OLD_GRAPH.replace("old = dist.log_prob(action)", (
        "old = torch.stack([dist.log_prob(action)]).flatten()")),
}  # fmt: skip
PRESENT = {
    "computed by a property": IN_CLASS.replace(
        "new = Categorical(logits=actor(x)).log_prob(action)", "new = rollout.log_prob()"
    )
    + STORED.replace("action, old, gain", "action, Rollout(x, action), gain"),
    "computed with a state dict that is no copy": FUNCTIONAL,
}
AGAIN = """\
for _ in range(3):
    x, gain = torch.randn(32, 4), torch.randn(32)
    with torch.no_grad():
        action = Categorical(logits=actor(x)).sample()
    for _ in range(3):
        with torch.no_grad():
            old = Categorical(logits=actor(x)).log_prob(action)
        for part in torch.randperm(32).split(8):
            learn(x[part], action[part], old[part], gain[part])
"""
COMPARED = """\
for step in range(6):
    action, prompts = torch.randint(0, 3, (16,)), torch.randn(64, 4)
    chosen = Categorical(logits=actor(ONE)).log_prob(action)
    rejected = Categorical(logits=actor(OTHER)).log_prob(action)
    loss = -torch.exp(chosen - rejected).clamp(max=3.0).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
RIGHT = {
    "the odds of two answers": NETS.replace("  #!", "")
    + COMPARED.replace("ONE", "torch.randn(16, 4)").replace("OTHER", "torch.randn(16, 4)"),
    "the odds of a drawn answer": NETS.replace("  #!", "")
    + COMPARED.replace("ONE", "hint").replace("OTHER", "torch.randn(16, 4)").replace("    chosen", (
        "    hint = torch.randn(16, 4)\n    action = Categorical(logits=actor(hint)).sample()\n    chosen")),
    "the odds of two answers of one table": NETS.replace("  #!", "")
    + COMPARED.replace("ONE", "prompts[torch.randperm(64)[:16]]").replace("OTHER", "prompts[:16]"),
    "computed once for all epochs": NETS + AGAIN.replace("    for _ in range(3):\n        with", (
        "    for _ in range(1):\n        with")),
    "computed once for a buffer that is filled again": NETS + "x = torch.empty(32, 4)\n" + AGAIN.replace(
        "x, gain = torch.randn(32, 4), torch.randn(32)", "gain = torch.randn(32); x.normal_()").replace(
        "    for _ in range(3):\n        with", "    for _ in range(1):\n        with"),
    "stored": NETS + STORED,
    "another policy": NETS.replace("#!", "") + "import copy\nbehaviour = copy.deepcopy(actor)\n"
    + STORED.replace("logits=actor", "logits=behaviour"),
    "computed with a copied state dict": FUNCTIONAL.replace(
        "actor.state_dict()", "{key: value.clone() for key, value in actor.state_dict().items()}"),
    "one step for each rollout": NETS + ONCE.replace("range(3)", "range(8)"),
    "dropout": PRESENT["computed by a property"].replace("nn.Tanh()", "nn.Dropout(0.2)"),
    "detached": NETS + OLD_GRAPH.replace("old = dist.log_prob(action)", "old = dist.log_prob(action).detach()")
    .replace("    learn", "    for _ in range(3):\n        learn"),
    "without a clip": NETS.replace("torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)",
                                   "(ratio * advantage)").replace("new - old", "new - new.detach()") + ONCE,
    "a ratio of distances": NETS.replace("new - old", "new - x.norm(dim=-1)") + STORED,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_old_probabilities_with_a_graph_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "old probabilities with a graph" in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", PRESENT)
def test_present_probabilities_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, PRESENT[name]) if "its clip never acts" in each.text)
    assert found.labels[0].span.line == marked(PRESENT[name])


def test_probabilities_that_are_computed_again_are_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, NETS + AGAIN) if "computed again on the same values" in each.text)
    assert "has been of 2 or more states of the parameters in turn" in found.text
    assert found.labels[0].span.line == marked(NETS + AGAIN)


def test_the_line_that_makes_no_copy_is_labelled(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, FUNCTIONAL) if "its clip never acts" in each.text)
    (label,) = (each for each in found.labels if each.role == "shared_here")
    text = (tmp_path / "script.py").read_text().splitlines()
    assert "behaviour = actor.state_dict()" in text[label.span.line - 1]


@pytest.mark.parametrize("name", RIGHT)
def test_old_probabilities_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "probabilities" in each.text] == []
