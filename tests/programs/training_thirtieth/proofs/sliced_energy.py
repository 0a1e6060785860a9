import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

repair = ("projected, x, retain_graph=True", "projected, x, create_graph=True")


def gradients(*edits):
    r = run("sliced_energy", *edits, as_main=False)
    torch.manual_seed(0)
    energy, batch = r["Energy"](), r["two_arcs"](256)
    state = torch.get_rng_state()
    curvature, magnitude = r["sliced_score_matching"](energy, batch)
    (curvature + magnitude).backward()
    torch.set_rng_state(state)
    return energy, batch, curvature, torch.cat([
        (p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in energy.parameters()])


def formula(energy, batch, with_curvature):
    """Objective by explicit Hessians of the energy, with the same projections."""
    v = torch.randn_like(batch).sign()
    x = batch.clone().requires_grad_(True)
    (g,) = torch.autograd.grad(energy(x).sum(), x, create_graph=True)
    rows = [torch.autograd.grad(g[:, i].sum(), x, create_graph=True)[0] for i in range(2)]
    hessian = torch.stack(rows, dim=1)
    loss = 0.5 * g.pow(2).sum(1).mean()
    if with_curvature:
        loss = loss - torch.einsum("bi,bij,bj->b", v, hessian, v).mean()
    grads = torch.autograd.grad(loss, list(energy.parameters()), allow_unused=True)
    return torch.cat([(g if g is not None else torch.zeros_like(p)).flatten() for g, p in zip(grads, energy.parameters())])


energy, batch, curvature, got = gradients()
assert not curvature.requires_grad
assert rel(got, formula(energy, batch, False)) < 1e-4
energy, batch, curvature, fixed = gradients(repair)
assert curvature.requires_grad
assert rel(fixed, formula(energy, batch, True)) < 1e-4
assert rel(got, fixed) > 0.5

full, full_repaired = run("sliced_energy"), run("sliced_energy", repair)
assert full["test_loss"] > -0.1 and full_repaired["test_loss"] < -2
data = full["two_arcs"](1024)
assert full["spread"](full["samples"]) > 2 * full["spread"](data)
assert abs(full_repaired["spread"](full_repaired["samples"]) / full["spread"](data) - 1) < 0.3
