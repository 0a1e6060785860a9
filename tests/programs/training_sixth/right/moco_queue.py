"""MoCo: query encoder, momentum key encoder and a queue of negatives."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, in_dim=32, hidden=64, out_dim=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(in_dim, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, out_dim)
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class MoCo(nn.Module):
    def __init__(self, encoder, dim=16, size=256, momentum=0.98, temperature=0.15):
        super().__init__()
        self.encoder_q = encoder
        self.encoder_k = copy.deepcopy(encoder)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.momentum, self.temperature = momentum, temperature
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def update_key_encoder(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data = k.data * self.momentum + q.data * (1 - self.momentum)

    @torch.no_grad()
    def enqueue(self, keys):
        n, start = keys.size(0), int(self.pointer)
        self.queue[:, start : start + n] = keys.t()
        self.pointer[0] = (start + n) % self.queue.size(1)

    def forward(self, view_q, view_k):
        q = self.encoder_q(view_q)
        with torch.no_grad():
            self.update_key_encoder()
            order = torch.randperm(view_k.size(0))
            keys = self.encoder_k(view_k[order])[order.argsort()]
        positive = (q * keys).sum(1, keepdim=True)
        negative = q @ self.queue.clone().detach()
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        loss = F.cross_entropy(logits, torch.zeros(q.size(0), dtype=torch.long))
        self.enqueue(keys)
        return loss


def augment(x):
    keep = (torch.rand_like(x) > 0.1).float()
    return x * keep + 0.2 * torch.randn_like(x)


@torch.no_grad()
def knn(encoder, x, y):
    encoder.eval()
    z = encoder(x)
    encoder.train()
    sim = (z @ z.t()).fill_diagonal_(-2)
    return (y[sim.topk(5, dim=1).indices].mode(dim=1).values == y).float().mean().item()


torch.manual_seed(5)
centers = torch.randn(6, 32)
y = torch.arange(768) % 6
x = centers[y] + 0.8 * torch.randn(768, 32)
model = MoCo(Encoder())
optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for epoch in range(12):
    model.train()
    total = 0.0
    for idx in torch.randperm(x.size(0)).split(64):
        loss = model(augment(x[idx]), augment(x[idx]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 3:
        print(f"epoch {epoch} loss {total / 12:.3f} knn {knn(model.encoder_q, x, y):.3f}")
