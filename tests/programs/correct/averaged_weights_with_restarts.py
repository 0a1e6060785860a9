"""A regression net with warm restarts, clipped gradients and an average of its weights that is evaluated."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

torch.manual_seed(0)
x = torch.linspace(-2, 2, 96).unsqueeze(1)
y = torch.sin(2 * x) + 0.05 * torch.randn_like(x)
net = nn.Sequential(nn.Linear(1, 24), nn.BatchNorm1d(24), nn.SiLU(), nn.Linear(24, 1))
average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-2, momentum=0.9, centered=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=4)
history, norms = [], []
for epoch in range(8):
    total = torch.zeros(())
    for rows in torch.randperm(96).split(32):
        loss = nn.functional.smooth_l1_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), 1.0))
        optimizer.step()
        average.update_parameters(net)
        total += loss.detach() * len(rows)
    schedule.step()
    history.append(total / 96)
update_bn([x], average)
net.eval()
average.eval()
with torch.no_grad():
    error = (average(x) - y).square().mean()
print(torch.stack(history).isfinite().all().item(), torch.stack(norms).max().item() > 0, error.item() < 2)
