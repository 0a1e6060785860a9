"""Checks the sentence about probabilities that are given where their logarithms are meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

START = """\
import torch.nn.functional as F
from torch.distributions import Categorical, MixtureSameFamily, Normal
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 9))
x, y = torch.randn(32, 1), torch.randn(32, 1)
"""
END = """
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(4):
    loss = nll(*net(x).chunk(3, -1))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MIXTURE = """
def nll(w, mean, scale):
    w = F.softmax(w, -1)
    return -torch.logsumexp(w + Normal(mean, scale.exp()).log_prob(y), -1).mean()  #!
"""
BY_HAND = """
def nll(w, mean, scale):
    terms = -0.5 * ((y - mean) / scale.exp()) ** 2 - scale
    terms = terms + w.softmax(dim=1)
    return terms.logsumexp(dim=1).neg().mean()  #!
"""
FAMILY = """
def nll(w, mean, scale):
    mix = Categorical(logits=F.softmax(w, -1))  #!
    return -MixtureSameFamily(mix, Normal(mean, scale.exp())).log_prob(y.squeeze(-1)).mean()
"""
CLASSIFIER = """
def nll(w, mean, scale):
    scores = -((y - mean) ** 2) + w.softmax(-1)
    return (scores.logsumexp(-1) - scores[:, 0]).mean()
"""
OTHER_AXIS = MIXTURE.replace("log_prob(y), -1)", "log_prob(y), 0)")
PARTS = """
def nll(w, mean, scale):
    w = torch.softmax(w, -1)
    parts = [w[:, k] + Normal(mean[:, k], 1.0).log_prob(y[:, 0]) for k in range(3)]
    return -torch.logsumexp(torch.stack(parts), 0).mean()  #!
"""
WRONG = {"a mixture": MIXTURE, "by hand": BY_HAND, "a family": FAMILY, "part by part": PARTS}
RIGHT = {
    "logarithms": MIXTURE.replace("softmax", "log_softmax"),
    "the logarithm of the weights": BY_HAND.replace("dim=1)\n", "dim=1).log()\n", 1),
    "a distribution of probabilities": FAMILY.replace("logits=", "probs="),
    "a mean that is a softmax": MIXTURE.replace("w + Normal(mean", "Normal(w"),
    "scores of classes": CLASSIFIER,
    "no axis of the weights": OTHER_AXIS,
}
WORDS = "their logarithms"


@pytest.mark.parametrize("name", WRONG)
def test_probabilities_in_place_of_logarithms_are_named(tmp_path: Path, name: str) -> None:
    program = START + WRONG[name] + END
    (found,) = (each for each in sentences(tmp_path, program) if WORDS in each.text)
    assert found.labels[0].span.line == marked(program)


@pytest.mark.parametrize("name", RIGHT)
def test_logarithms_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, START + RIGHT[name] + END) if WORDS in each.text] == []
