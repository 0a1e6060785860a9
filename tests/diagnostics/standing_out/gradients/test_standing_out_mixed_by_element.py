"""Checks the sentence about points of a gradient penalty that are mixed by a number for each element."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

from tensorlens.records.report import StandingOut

CRITIC = """\
net = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    real, fake = torch.randn(8, 3) + 1, torch.randn(8, 3)
    {}
    score = net(x)
    (grad,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    loss = net(fake).mean() - net(real).mean() + 10 * (grad.norm(dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "like": "e = torch.rand_like(real)  #!\n    x = (e * real + (1 - e) * fake).requires_grad_(True)",
    "a step": "e = torch.rand(real.shape)  #!\n    x = (real + e * (fake - real)).detach().requires_grad_()",
    "a distribution": "e = torch.distributions.Uniform(0.0, 1.0).sample(real.shape)  #!\n"
    "    x = (torch.ones_like(e) - e).mul(real).add(fake * e).requires_grad_()",
    "a step back": "e = torch.rand_like(real)  #!\n    x = (real - e * (real - fake)).detach().requires_grad_()",
    "addcmul": "e = torch.rand(8, 3)  #!\n    x = torch.addcmul(fake, e, real - fake).clone().requires_grad_()",
    "in place": "e = torch.rand(24)  #!\n    x = (fake - real).mul_(e.view(8, 3)).add_(real).requires_grad_()",
    "a number for each column": "e = torch.rand(8, 1, 3)  #!\n"
    "    x = (e * real[:, None] + (1 - e) * fake[:, None]).requires_grad_()",
    "NumPy": "import numpy as np; e = torch.from_numpy(np.random.rand(8, 3)).float()  #!\n"
    "    x = (real * e + fake * (1.0 - e)).requires_grad_()",
    "lerp": "e = torch.empty_like(real).uniform_()  #!\n    x = torch.lerp(real, fake, e)\n    x.requires_grad_()",
}
RIGHT = {
    "a number for each sample": "e = torch.rand(8, 1)\n    x = (e * real + (1 - e) * fake).requires_grad_(True)",
    "noise around the samples": "x = (real + 0.5 * real.std() * torch.rand_like(real)).requires_grad_(True)",
    "a sample and the same with noise": (
        "e = torch.rand(real.size())\n    near = real + 0.5 * real.std() * torch.rand(real.size())\n"
        "    x = (e * real + ((1 - e) * near)).detach().requires_grad_(True)"
    ),
    "a sample and copies of it": (
        "e = torch.rand_like(real)\n    x = (e * real.data + (1 - e) * (real.data + 0.1)).requires_grad_(True)"
    ),
    "a sample and noise": (
        "e = torch.rand_like(real)\n    x = (e * real + (1 - e) * torch.randn_like(real)).requires_grad_(True)"
    ),
    "lerp by a column": "e = torch.rand_like(real[:, :1])\n    x = fake.lerp(real, e).requires_grad_()",
    "a mask": "e = (torch.arange(24).view(8, 3) % 2).float()\n    x = (real * e + fake * (1.0 - e)).requires_grad_()",
    "two factors": "e = torch.rand_like(real)\n    x = (e * real + (2 - e) * fake).requires_grad_()",
    "the samples": "x = real.requires_grad_(True)",
    "one column of shares": "e = torch.rand(8, 1).expand(8, 3)\n    x = (e * real + (1 - e) * fake).requires_grad_()",
}


FUNCTIONS = """\
net = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
score = lambda x: net(x).squeeze()
for _ in range(3):
    real, fake = torch.randn(8, 3) + 1, torch.randn(8, 3)
    e = torch.rand(8, {})  #!
    x = torch.lerp(real, fake, e)
    slopes = {}
    loss = net(fake).mean() - net(real).mean() + 10 * (slopes.norm(dim=-1) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TRANSFORMS = (
    "torch.func.vmap(torch.func.grad(score))(x)",
    "torch.func.vmap(torch.func.grad(lambda scale, x: scale * score(x), argnums=1), in_dims=(None, 0))(1.0, x)",
    "torch.func.grad(lambda x: net(x).sum())(x)",
    "torch.func.vmap(torch.func.jacrev(score))(x)",
    "torch.autograd.functional.jacobian(lambda x: net(x).sum(), x, create_graph=True)",
    "(x.requires_grad_(), net(x).sum().backward(create_graph=True), x.grad)[-1]",
    "torch.func.vmap(torch.func.grad_and_value(score))(x)[0]",
)


NUMBERS = """\
net = nn.Sequential(nn.Linear(1, 8), nn.SiLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    real, fake = torch.randn(8, 16, 1) + 1, torch.randn(8, 16, 1)
    e = torch.rand(8, 16, 1)
    x = (e * real + (1 - e) * fake).requires_grad_()
    (grad,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    loss = net(fake).mean() - net(real).mean() + 10 * (grad.norm(dim=-1) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PLACES = NUMBERS.replace("Linear(1, 8)", "Conv1d(4, 8, 1)").replace("Linear(8, 1)", "Conv1d(8, 1, 1)").replace(
    "(8, 16, 1)", "(8, 4, 16)").replace("e = torch.rand(8, 4, 16)", "e = torch.rand(8, 1, 16)").replace(
    "dim=-1", "dim=1")  # fmt: skip


def _found(folder: Path, body: str) -> list[StandingOut]:
    return [each for each in sentences(folder, body) if "mixes two samples" in each.text]


@pytest.mark.parametrize("case", WRONG)
def test_a_mixture_by_elements_is_named(tmp_path: Path, case: str) -> None:
    body = CRITIC.format(WRONG[case])
    (found,) = _found(tmp_path, body)
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("case", RIGHT)
def test_other_points_are_left_alone(tmp_path: Path, case: str) -> None:
    assert [each.text for each in _found(tmp_path, CRITIC.format(RIGHT[case]))] == []


@pytest.mark.parametrize("body", [NUMBERS, PLACES], ids=["numbers", "places"])
def test_samples_that_have_a_share_each_are_left_alone(tmp_path: Path, body: str) -> None:
    assert [each.text for each in _found(tmp_path, body)] == []


@pytest.mark.parametrize("slopes", TRANSFORMS)
def test_a_mixture_for_a_transform_is_named(tmp_path: Path, slopes: str) -> None:
    body = FUNCTIONS.format(3, slopes)
    (found,) = _found(tmp_path, body)
    assert found.labels[0].span.line == marked(body)
    assert _found(tmp_path, FUNCTIONS.format(1, slopes)) == []
