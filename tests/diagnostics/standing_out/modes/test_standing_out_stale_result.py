"""Checks the sentences about values that evaluations use although their parameters have changed since."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

HEAD = """\
import functools
F = torch.nn.functional
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.head, self.kept, self.store = nn.Parameter(torch.ones(3, 4)), nn.Linear(3, 2), None, {}
    def build(self):
        return self.scale.exp() / 2  #!
    def forward(self, x):
        return self.head(F.linear(x, self.weight()))
"""
RUN = """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.zeros(8, dtype=torch.long)
for _ in range(4):
    net.train()
    for _ in range(2):
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
    net.eval()
    with torch.no_grad():
        net(x).argmax(1)
"""
WRONG = {
    "below is None": """\
    def weight(self):
        if self.training:
            return self.build()
        if self.kept is None:
            self.kept = self.build().detach()
        return self.kept
""",
    "in a dict": """\
    def weight(self):
        if not self.training and "weight" in self.store:
            return self.store["weight"]
        weight = self.build()
        if not self.training:
            self.store["weight"] = weight
        return weight
""",
    "a cached property": """\
    @functools.cached_property
    def fixed(self):
        return self.build()
    def weight(self):
        return self.build() if self.training else self.fixed
""",
}
WRONG["handed to a function"] = (
    WRONG["below is None"].rstrip()
    + """
    def use(self, x, weight):
        return self.head(F.linear(x, weight))
    def forward(self, x):
        return self.use(x, self.weight())
"""
)
RIGHT = {
    "cleared when training goes on": """\
    def train(self, mode=True):
        self.kept = None
        return super().train(mode)
    def weight(self):
        if self.training:
            return self.build()
        if self.kept is None:
            self.kept = self.build().detach()
        return self.kept
""",
    "an average": """\
    def weight(self):
        weight = self.build()
        with torch.no_grad():
            self.kept = weight.clone() if self.kept is None else 0.9 * self.kept + 0.1 * weight
        return weight if self.training else self.kept
""",
    "the first values beside those of now": """\
    def weight(self):
        weight = self.build()
        if not self.training and self.kept is None:
            self.kept = weight
        return weight
    def forward(self, x):
        weights = [self.weight()] if self.training else [self.weight(), self.kept]
        return sum(self.head(F.linear(x, each)) for each in weights)
""",
    "the first values as an anchor": """\
    def weight(self):
        if self.kept is None:
            with torch.no_grad():
                self.kept = self.build()
        return self.build()
    def forward(self, x):
        near = [self.head(F.linear(x, each)) for each in (self.weight(), self.kept)]
        return near[0] - 0.1 * near[1].detach()
""",
}
WORDS = "with one, the same line uses a value that is computed anew"


@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_the_first_evaluation_is_named(tmp_path: Path, name: str) -> None:
    script = HEAD + WRONG[name] + RUN
    (found,) = (each for each in sentences(tmp_path, script) if WORDS in each.text)
    used = "weight" if "handed" in name else "self.weight()"
    assert found.text == (
        f"`F.linear(x, {used})` uses a value that was computed from `net.scale` 6 steps before, without a graph: "
        + WORDS
    )
    assert found.labels[0].span.line == marked(script)


@pytest.mark.parametrize("name", RIGHT)
def test_values_that_are_meant_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, HEAD + RIGHT[name] + RUN)
    assert [each.text for each in found if WORDS in each.text] == []


def test_features_from_before_training_that_a_loss_compares_with_are_left_alone(tmp_path: Path) -> None:
    script = """\
F = torch.nn.functional
net = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 4)
def unit(z):
    return F.normalize(z, dim=1)
with torch.no_grad():
    before = net(x)
for _ in range(6):
    loss = (unit(net(x)) - unit(before)).square().mean() + net(x).mean()
    opt.zero_grad(); loss.backward(); opt.step()
"""
    assert [each.text for each in sentences(tmp_path, script) if WORDS in each.text] == []


PREDICTED = """\
F = torch.nn.functional
net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.zeros(8, dtype=torch.long)
HELPER
with torch.no_grad():
    before = net(x)
for _ in range(6):
    BODY
    opt.zero_grad(); loss.backward(); opt.step()
    AFTER
"""
FUNCTION = "def loss_of(logits, y):\n    return F.cross_entropy(logits, y)"
MEANT = {
    "a function for the values of before and of now": (FUNCTION, "loss = loss_of(net(x), y)", "loss_of(before, y)"),
    "a lambda": ("log = lambda z: F.log_softmax(z, 1)", "loss = F.nll_loss(log(net(x)), y)", "log(before).exp()"),
    "a loop through both": (
        "", "losses = [F.cross_entropy(z, y) for z in (net(x), before)]; loss = losses[0]", "losses[1].item()"),
    "a function in a function": (
        FUNCTION + "\ndef report(logits):\n    return loss_of(logits, y)", "loss = report(net(x))", "report(before)"),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANT)
def test_predictions_of_the_first_network_beside_those_of_now_are_left_alone(tmp_path: Path, name: str) -> None:
    helper, body, after = MEANT[name]
    script = PREDICTED.replace("HELPER", helper).replace("BODY", body).replace("AFTER", after)
    assert [each.text for each in sentences(tmp_path, script) if WORDS in each.text] == []
