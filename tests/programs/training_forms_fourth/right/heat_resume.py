import io

import torch

torch.manual_seed(53)
CELLS = 16


def fresh_weights():
    names = ("source", "flux", "edge", "core", "decay")
    return {n: torch.eye(CELLS) + 0.02 * torch.randn(CELLS, CELLS) for n in names}


def roll_out(weights, rod):
    rod = torch.tanh(rod @ weights["source"])
    rod = rod + torch.sin(rod @ weights["flux"]) * 0.1
    rod = torch.tanh(rod @ weights["edge"]) @ weights["core"]
    return rod @ weights["decay"]


def diffuse(rod, times=6):
    for _ in range(times):
        rod = rod + 0.2 * (rod.roll(1, -1) - 2 * rod + rod.roll(-1, -1))
    return rod


def rods(n):
    return torch.randn(n, 4) @ torch.sin(torch.outer(torch.arange(1.0, 5.0), torch.linspace(0, 3.14, CELLS)))


def fit(weights, opt, steps, label):
    for step in range(steps):
        rod = rods(64) * 0.3
        loss = (roll_out(weights, rod) - diffuse(rod)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0 or step == steps - 1:
            print(f"{label} step {step:3d} loss {loss.item():.6f}")


def pause(weights, opt):
    disk = io.BytesIO()
    torch.save({"weights": {k: v.detach() for k, v in weights.items()}, "opt": opt.state_dict()}, disk)
    disk.seek(0)
    return disk


def resume(disk):
    saved = torch.load(disk)
    weights = {k: v.requires_grad_() for k, v in saved["weights"].items()}
    opt = torch.optim.Adam(list(weights.values()), lr=2e-3)
    opt.load_state_dict(saved["opt"])
    return weights, opt


weights = {k: v.requires_grad_() for k, v in fresh_weights().items()}
opt = torch.optim.Adam(list(weights.values()), lr=2e-3)
fit(weights, opt, 60, "first")
weights, opt = resume(pause(weights, opt))
fit(weights, opt, 40, "second")
with torch.no_grad():
    rod = rods(1000) * 0.3
    print(f"check {(roll_out(weights, rod) - diffuse(rod)).square().mean().item():.7f}")
