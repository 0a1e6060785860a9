"""Trains a small network with DistributedDataParallel on gloo: `rank_run.py STEPS`, started once for each rank."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

steps = int(sys.argv[1])
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [torch.nn.Linear(64, 64) if place % 2 == 0 else torch.nn.ReLU() for place in range(7)]
model = DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.Linear(64, 8)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(dist.get_rank())
for _ in range(steps):
    x, target = torch.randn(256, 64), torch.randint(8, (256,))
    loss = torch.nn.functional.cross_entropy(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
dist.destroy_process_group()
