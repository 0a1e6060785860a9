"""Momentum contrast encoder with a feature queue."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class QueueEncoder(nn.Module):
    def __init__(self, n_in=16, dim=8, slots=32, momentum=0.99, temperature=0.2):
        super().__init__()
        self.momentum, self.temperature, self.slots = momentum, temperature, slots
        self.query = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, dim))
        self.key = copy.deepcopy(self.query)
        for p in self.key.parameters():
            p.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(dim, slots), dim=0))
        self.register_buffer("cursor", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _follow(self):
        for q, k in zip(self.query.parameters(), self.key.parameters()):
            k.mul_(self.momentum).add_(q, alpha=1 - self.momentum)

    @torch.no_grad()
    def _push(self, keys):
        start = int(self.cursor)
        self.queue[:, start:start + keys.size(0)] = keys.t()
        self.cursor[0] = (start + keys.size(0)) % self.slots

    def forward(self, view_a, view_b):
        q = F.normalize(self.query(view_a), dim=1)
        with torch.no_grad():
            self._follow()
            k = F.normalize(self.key(view_b), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.queue.clone()
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        self._push(k)
        return logits, torch.zeros(q.size(0), dtype=torch.long)
