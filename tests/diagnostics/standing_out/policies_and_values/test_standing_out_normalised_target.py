"""Value targets that are made of an advantage after it was normalised."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said

SCRIPT = """
    import torch
    actor, critic = torch.nn.Linear(3, 2), torch.nn.Linear(3, 1)
    opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=0.1)
    for _ in range(3):
        x, reward = torch.randn(16, 3), torch.randn(16)
        with torch.no_grad():
            old = critic(x).squeeze(1)
            act = torch.distributions.Categorical(logits=actor(x)).sample()
            adv = reward - old
            {made}
        for rows in torch.randperm(16).split(8):
            {used}
            log_p = torch.distributions.Categorical(logits=actor(x[rows])).log_prob(act[rows])
            loss = -(log_p * {weight}[rows]).mean() + {error}
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
NORMALISE = "adv = (adv - adv.mean()) / (adv.std() + 1e-8)"
ERROR = "torch.nn.functional.mse_loss(critic(x[rows]).squeeze(1), ret[rows])"
SQUARE = "(critic(x[rows]).squeeze(1) - ret).pow(2).mean()"
WRONG = {
    "one line": (f"{NORMALISE}; ret = adv + old", "", "adv", ERROR),
    "in place": ("adv -= adv.mean(); adv /= adv.std()", "ret = old[rows] + adv[rows]", "adv", SQUARE),
    "std_mean": (
        "s, m = torch.std_mean(adv); data = {'a': (adv - m) / s}; ret = old + data['a']",
        "",
        "data['a']",
        f"(ret[rows] - {ERROR.split('(', 1)[1].split(', ret')[0]}).square().mean()",
    ),
    "of numbers": (
        "adv, old = torch.tensor(adv.tolist()), torch.tensor(old.tolist()); " + NORMALISE + "; ret = adv + old",
        "",
        "adv",
        ERROR,
    ),
}
RIGHT = {
    "before": (f"ret = adv + old; {NORMALISE}", "", "adv", ERROR),
    "another name": (f"raw = adv; {NORMALISE}; ret = raw + old", "", "adv", ERROR),
    "scaled returns": ("ret = adv + old; ret = (ret - ret.mean()) / ret.std()", "", "adv", ERROR),
    "one reward": (
        "r = (reward - reward.mean()) / reward.std(); ret = r + 0.9 * old; adv = r",
        "",
        "adv",
        ERROR,
    ),
    "a bonus": (
        "b = adv.abs(); bonus = (b - b.mean()) / b.std(); ret = bonus + old",
        "",
        "bonus",
        ERROR,
    ),
    "a difference the other way": ("adv = old - reward; " + NORMALISE + "; ret = adv + old", "", "adv", ERROR),
    "a step of the value": (NORMALISE, "", "adv", "(critic(x[rows]).squeeze(1) - (old + adv)[rows]).pow(2).mean()"),
    "scaled rewards": (
        "r = (reward - reward.mean()) / reward.std(); ret = r + 0.9 * old; adv = ret - old",
        "",
        "adv",
        ERROR,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_target_of_a_normalised_advantage_is_named(tmp_path: Path, name: str) -> None:
    made, used, weight, error = WRONG[name]
    found, _ = said(tmp_path, SCRIPT.format(made=made, used=used, weight=weight, error=error), "sum is no return")
    assert len(found) == 1
    assert "compares a value with" in found[0].text


@pytest.mark.parametrize("name", RIGHT)
def test_a_target_of_the_advantage_itself_is_not(tmp_path: Path, name: str) -> None:
    made, used, weight, error = RIGHT[name]
    found, _ = said(tmp_path, SCRIPT.format(made=made, used=used, weight=weight, error=error), "sum is no return")
    assert not found
