"""Checks the sentence about penalties that take the norms of parts of a gradient."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

IMAGES = """\
net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    x = torch.rand(8, 2, 6, 6, requires_grad=True)
    score = net(x)
    (grad,) = torch.autograd.grad(score, x, grad_outputs=torch.ones_like(score), create_graph=True)
    norm = grad.norm(2, dim=1)  #!
    loss = score.mean() + 10 * (norm - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "images": IMAGES,
    "a sum": IMAGES.replace("grad(score, x, grad_outputs=torch.ones_like(score),", "grad(score.sum(), x,"),
    "a function": IMAGES.replace("grad.norm(2, dim=1)", "torch.linalg.vector_norm(grad, dim=1)"),
    "a column": IMAGES.replace("norm - 1", "1 - norm"),
    "written out": IMAGES.replace("grad.norm(2, dim=1)", "(grad.pow(2).sum(1) + 1e-12).sqrt()"),
    "an error": IMAGES.replace("(norm - 1).square().mean()", "nn.functional.mse_loss(norm, torch.ones_like(norm))"),
}
ASK = IMAGES.split("score = net(x)\n")[1].split("\n")[0]
FUNCTION = IMAGES.replace(ASK, "    grad = torch.func.grad(lambda z: net(z).sum())(x)")
EACH = IMAGES.replace(ASK, "    grad = torch.func.vmap(torch.func.grad(lambda z: net(z[None]).squeeze()))(x)")
WRONG |= {
    "a transform": FUNCTION,
    "a transform that returns the value, too": FUNCTION.replace(
        "grad = torch.func.grad(", "grad, _ = torch.func.grad_and_value("
    ),
    "a transform for each sample": EACH,
    "einsum": FUNCTION.replace("grad.norm(2, dim=1)", "torch.einsum('bchw,bchw->bhw', grad, grad).add(1e-9).sqrt()"),
}
RIGHT = {
    "a transform, flat": FUNCTION.replace("grad.norm(2, dim=1)", "grad.flatten(1).norm(2, dim=1)"),
    "a transform for each sample, flat": EACH.replace("grad.norm(2, dim=1)", "grad.flatten(1).norm(2, dim=1)"),
    "energies of parts, for each sample": EACH.replace("net(z[None])", "(z - 1).square().sum(0).sum() + net(z[None])"),
    "einsum over all": FUNCTION.replace("grad.norm(2, dim=1)", "torch.einsum('bchw,bchw->b', grad, grad).sqrt()"),
    "written out over all dimensions": IMAGES.replace("grad.norm(2, dim=1)", "(grad ** 2).sum((1, 2, 3)).sqrt()"),
    "of the samples, in another shape": IMAGES.replace("grad.norm(2, dim=1)", "grad.view(8, 1, 72).norm(dim=2)"),
    "flat": IMAGES.replace("grad.norm(2, dim=1)", "grad.flatten(1).norm(2, dim=1)"),
    "all dimensions": IMAGES.replace("grad.norm(2, dim=1)", "grad.norm(2, dim=(1, 2, 3))"),
    "one norm, of one sample": IMAGES.replace("grad.norm(2, dim=1)", "grad.norm(2)").replace("rand(8,", "rand(1,"),
    "a score for each point": IMAGES.replace("score = net(x)", "score = x.sum(1) * net(x).unsqueeze(2)"),
    "an energy of atoms": IMAGES.replace(
        "score = net(x)", "score = (x - 1).square().sum(1).sum((1, 2)) + net(x)[:, 0]"
    ),
    "across samples": IMAGES.replace("dim=1)", "dim=0)"),
    "a number": IMAGES.replace(
        "(norm - 1)", "(torch.autograd.grad(score.mean(), scale, create_graph=True)[0].norm() - 1)"
    )
    .replace("score = net(x)", "score = net(x) * scale")
    .replace("opt =", "scale = nn.Parameter(torch.tensor(2.0))\nopt ="),
    "only small": IMAGES.replace("(norm - 1)", "norm"),
}
WORDS = "norms for each of the"


@pytest.mark.parametrize("name", WRONG)
def test_norms_of_parts_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "takes 36 norms for each of the 8 samples, of 2 elements each" in found.text
    assert "in `grad`, has 72 elements" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_norms_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


WHOLE = {
    "a method": IMAGES.replace("grad.norm(2, dim=1)", "grad.norm(2)"),
    "flat": IMAGES.replace("grad.norm(2, dim=1)", "torch.linalg.vector_norm(grad.flatten(1))"),
    "written out": IMAGES.replace("grad.norm(2, dim=1)", "(grad.pow(2).sum() + 1e-12).sqrt()"),
}

SUMMED = WHOLE["a method"].replace("grad(score, x, grad_outputs=torch.ones_like(score),", "grad(score.sum(), x,")
WHOLE |= {
    "of a sum": SUMMED,
    "of a sum, in a hinge": SUMMED.replace("score.mean() +", "(1 - net(torch.rand(8, 2, 6, 6))).relu().mean() +"),
    "of a sum, in a pass of its own": SUMMED.replace("loss = score.mean() +", "score.mean().backward(retain_graph=True)"
                                                     "\n    loss ="),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_a_norm_of_a_batch_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WHOLE[name]) if "one norm of the gradients" in each.text)
    assert found.labels[0].span.line == marked(WHOLE[name])


ATOMS = """\
net, pos = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1)), torch.randn(9, 3)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(3):
    x = pos.clone().requires_grad_(True)
    energy = net(x).sum()
    (grad,) = torch.autograd.grad(energy, x, create_graph=True)
    loss = (energy - 1.0).square() + (grad.norm() - 1.0) ** 2
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SYSTEMS = {
    "atoms": ATOMS,
    "atoms, averaged": ATOMS.replace(").sum()", ").mean()"),
    "another average": ATOMS.replace("loss =", "loss = (net(pos + 1.0).mean() - 2.0).square() +"),
    "with weight decay": ATOMS.replace("loss =", "loss = sum(p.square().mean() for p in net.parameters()) +"),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_norm_of_the_force_on_a_molecule_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, SYSTEMS[name]) if "one norm of" in each.text] == []
