"""Fit launch speed and air drag of projectiles through a simulator; both are kept in their physical range by a
projection after each optimizer step. Gravity is known and stays fixed."""
import torch

torch.set_num_threads(1)
torch.manual_seed(0)

DT, STEPS, BATCH = 0.04, 40, 48
gravity = torch.tensor([0.0, -9.81])


def simulate(speed, drag, angle):
    velocity = speed * torch.stack([angle.cos(), angle.sin()], 1)
    position = torch.zeros_like(velocity)
    path = []
    for _ in range(STEPS):
        pull = drag * velocity.norm(dim=1, keepdim=True) * velocity
        velocity = velocity + DT * (gravity - pull)
        position = position + DT * velocity
        path.append(position)
    return torch.stack(path, 1)


true_speed, true_drag = torch.tensor(12.0), torch.tensor(0.08)
angles = torch.empty(BATCH).uniform_(0.3, 1.2)
with torch.no_grad():
    clean = simulate(true_speed, true_drag, angles)
observed = clean + 0.02 * torch.randn_like(clean)
seen = torch.rand(BATCH, STEPS, 1) < 0.5

speed = torch.tensor(9.0, requires_grad=True)
drag = torch.tensor(0.0, requires_grad=True)
optimizer = torch.optim.Adam([{"params": [speed], "lr": 0.5}, {"params": [drag], "lr": 0.015}])
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 160)
bounds = [(speed, 1.0, 30.0), (drag, 0.0, 0.5)]

for i in range(160):
    path = simulate(speed, drag, angles)
    loss = ((path - observed).pow(2) * seen).sum() / (2 * seen.sum())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    with torch.no_grad():
        for value, low, high in bounds:
            value.clamp_(low, high)
    if i % 40 == 0:
        print(f"iteration {i}  loss {loss.item():.4f}  speed {speed.item():.2f}  drag {drag.item():.3f}")

with torch.no_grad():
    hidden = ((simulate(speed, drag, angles) - clean).pow(2) * ~seen).sum() / (2 * (~seen).sum())
print(f"speed {speed.item():.3f} (true 12), drag {drag.item():.4f} (true 0.08), error on unseen points {hidden.item():.6f}")
