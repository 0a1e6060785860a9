"""Radiance along rays: two NumPy buffers are filled anew for each step, and tensors share their memory."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(1)
pos = np.empty((16, 3), dtype=np.float32)
col = np.empty((16, 3), dtype=np.float32)
tpos, tcol = torch.from_numpy(pos), torch.from_numpy(col)
net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
opt = torch.optim.Adam(net.parameters(), 5e-4)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 0.1 ** (s / 10))
for it in range(4):
    np.copyto(pos, rng.uniform(-1, 1, pos.shape))
    np.copyto(col, rng.uniform(0, 1, col.shape))
    enc = torch.cat([f(tpos * 2**k) for k in range(2) for f in (torch.sin, torch.cos)], 1)
    raw = net(enc)
    alpha = 1 - torch.exp(-torch.relu(raw[:, 3]))
    trans = torch.cumprod(torch.cat([torch.ones(1), 1 - alpha + 1e-10]), 0)[:-1]
    rgb = torch.sigmoid(raw[:, :3]) * (alpha * trans)[:, None]
    loss = (rgb - tcol).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
print(loss.item())
