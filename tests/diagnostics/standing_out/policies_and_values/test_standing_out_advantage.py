"""Checks the sentence about log-probabilities that a loss multiplies by an estimate with a graph."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NETS = """\
body = nn.Sequential(nn.Linear(4, 16), nn.Tanh())
actor, critic = nn.Linear(16, 3), nn.Linear(16, 1)
opt = torch.optim.Adam([*body.parameters(), *actor.parameters(), *critic.parameters()], lr=0.01)
for _ in range(4):
    x, r = torch.randn(32, 4), torch.randn(32)
    h = body(x)
    scores, value = actor(h), critic(h).squeeze(-1)
    dist = torch.distributions.Categorical(logits=scores)
    action = dist.sample()
"""
END = "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
ERROR = "    loss = policy.mean() + 0.5 * (r - value).pow(2).mean()\n" + END
ADVANTAGE = "    advantage = r - value\n"
PLAIN = NETS + ADVANTAGE + "    policy = -dist.log_prob(action) * advantage  #!\n" + ERROR
PPO = """\
    old = torch.randn(32)
    ratio = (dist.log_prob(action) - old).exp()
    policy = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)  #!
"""
WRONG = {
    "a critic with its own error": PLAIN,
    "a normalised advantage": PLAIN.replace("r - value\n", "r - value\n    advantage = (advantage - advantage.mean()) "
                                            "/ (advantage.std() + 1e-8)\n", 1),
    "a critic that runs again for its error": PLAIN.replace("(r - value)", "(r - critic(body(x)).squeeze(-1))", 1)
    .replace("r - critic(body(x)).squeeze(-1)\n", "r - value\n"),
    "clipped ratios": NETS + ADVANTAGE + PPO + ERROR,
    "chosen from log_softmax": PLAIN.replace(
        "dist.log_prob(action) *", "scores.log_softmax(-1).gather(1, action[:, None]).squeeze(1) *"),
    "a smooth error": PLAIN.replace("(r - value).pow(2).mean()", "nn.functional.smooth_l1_loss(value, r)"),
    "two passes": PLAIN.replace("    loss =", "    opt.zero_grad()\n    policy.mean().backward(retain_graph=True)\n"
                                "    loss = 0 *").replace("    opt.zero_grad()\n    loss.b", "    loss.b"),
}  # fmt: skip
SURPRISE = "nn.functional.cross_entropy(scores, action, reduction='none')"
WRONG |= {
    "a dot product": PLAIN.replace("-dist.log_prob(action) * advantage", f"torch.dot({SURPRISE}, advantage) / 32"),
    "a product of matrices": PLAIN.replace("-dist.log_prob(action) * advantage", f"{SURPRISE} @ advantage"),
    "einsum": PLAIN.replace(
        "-dist.log_prob(action) * advantage", "-torch.einsum('b,b->', dist.log_prob(action), advantage)"),
    "a product that is added": PLAIN.replace(
        "-dist.log_prob(action) * advantage", f"torch.addcmul(0.01 * scores.square().mean(), {SURPRISE}, advantage)"),
    "chosen by one-hot rows": PLAIN.replace(
        "dist.log_prob(action) *", "(scores.log_softmax(-1) * nn.functional.one_hot(action, 3).float()).sum(-1) *"),
    "chosen from probabilities": PLAIN.replace(
        "dist.log_prob(action) *", "scores.softmax(-1).gather(1, action[:, None]).squeeze(1).log() *"),
    "less the logsumexp": PLAIN.replace(
        "dist.log_prob(action) *", "(scores.gather(1, action[:, None]).squeeze(1) - scores.logsumexp(-1)) *"),
}  # fmt: skip
WEIGHTS = (
    NETS
    + f"    policy = {SURPRISE} * value\n"
    + ERROR.replace("0.5 * (r - value).pow(2).mean()", ("nn.functional.mse_loss(value, torch.ones_like(value))"))
)
RIGHT = {
    "a dot product, detached": PLAIN.replace(
        "-dist.log_prob(action) * advantage  #!", f"torch.dot({SURPRISE}, advantage.detach())"),
    "a gate times its expert's value": PLAIN.replace(
        "-dist.log_prob(action) * advantage  #!",
        "(scores.softmax(-1).gather(1, action[:, None]).squeeze(1) * value - r) ** 2"),
    "a quality that weighs the loss of labels": PLAIN.replace(
        "-dist.log_prob(action) * advantage", (
        "nn.functional.cross_entropy(scores, torch.randint(0, 3, (32,)), reduction='none') * value")),
    "a learned weight": PLAIN.replace("critic(h).squeeze(-1)", "critic(h).squeeze(-1).sigmoid()").replace(
        "* advantage", "* value"),
    "learned weights of samples": WEIGHTS,
    "learned weights, and a square": WEIGHTS.replace("nn.functional.mse_loss(value, torch.ones_like(value))", (
        "(value - 1).pow(2).mean()")),
    "an expected value": PLAIN.replace("* advantage  #!", "* 0.1 - dist.log_prob(action).exp() * value"),
    "detached": PLAIN.replace("* advantage  #!", "* advantage.detach()"),
    "computed without a graph": NETS + "    with torch.no_grad():\n        advantage = r - value\n"
    "    policy = -dist.log_prob(action) * advantage\n" + ERROR,
    "no critic": PLAIN.replace("r - value", "r - r.mean()"),
    "expected values of all actions": PLAIN.replace("-dist.log_prob(action) * advantage  #!", (
        "-(dist.probs * dist.logits).sum(-1) * 0.1")),
    "a temperature that is trained": PLAIN.replace("* advantage  #!", (
        "* (r - value).detach() * body[0].weight.exp().mean()")),
    "a product without a probability": PLAIN.replace("-dist.log_prob(action) * advantage  #!", (
        "h.mean(-1) * advantage")),
    "weights of a mixture": PLAIN.replace("-dist.log_prob(action) * advantage  #!", (
        "-(value.sigmoid() * dist.log_prob(action) + (1 - value.sigmoid()) * dist.log_prob(action * 0))"))
    .replace("(r - value).pow(2)", "value.sigmoid()"),
}  # fmt: skip
WORDS = "trains them already"


@pytest.mark.parametrize("name", WRONG)
def test_an_advantage_with_a_graph_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "gives `critic.weight` and `critic.bias` gradients too" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_constant_advantage_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
