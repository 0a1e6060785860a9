"""Direct preference optimisation of a low-rank adapter on a small pretrained sequence model.

No second copy of the model is needed for the reference: it is the same network with its adapters switched off.
"""
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)

VOCAB, DIM, RANK, LENGTH, BETA = 16, 32, 4, 8, 0.5


class AdaptedLinear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.base = nn.Linear(d_in, d_out)
        self.down = nn.Parameter(torch.randn(RANK, d_in) / d_in ** 0.5)
        self.up = nn.Parameter(torch.zeros(d_out, RANK))
        self.adapter_on = True

    def forward(self, x):
        y = self.base(x)
        if self.adapter_on:
            y = y + 2.0 * (x @ self.down.T) @ self.up.T
        return y


class PolicyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.GRU(DIM, DIM, batch_first=True)
        self.mlp = nn.Sequential(AdaptedLinear(DIM, 2 * DIM), nn.GELU(), AdaptedLinear(2 * DIM, DIM))
        self.head = AdaptedLinear(DIM, VOCAB)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.head(hidden + self.mlp(hidden))

    @contextlib.contextmanager
    def adapters_off(self):
        for module in self.children():
            module.adapter_on = False
        try:
            yield self
        finally:
            for module in self.children():
                module.adapter_on = True


def sequence_log_prob(model, ids):
    log_probs = F.log_softmax(model(ids[:, :-1]), dim=-1)
    return log_probs.gather(-1, ids[:, 1:, None]).squeeze(-1).sum(dim=1)


def walks(n):
    steps = torch.where(torch.rand(n, LENGTH) < 0.5, 1, -1)
    return (torch.randint(VOCAB, (n, 1)) + steps.cumsum(dim=1)) % VOCAB


def rated_pairs(n):
    """Two continuations of the same random walk on a ring; raters prefer the one that climbs."""
    start = walks(n)[:, :LENGTH // 2]
    climb = torch.arange(1, LENGTH // 2 + 1)
    chosen = torch.cat([start, (start[:, -1:] + climb) % VOCAB], dim=1)
    rejected = torch.cat([start, (start[:, -1:] - climb) % VOCAB], dim=1)
    return chosen, rejected


def preference_loss(model, chosen, rejected):
    policy = sequence_log_prob(model, chosen) - sequence_log_prob(model, rejected)
    with torch.no_grad(), model.adapters_off():
        reference = sequence_log_prob(model, chosen) - sequence_log_prob(model, rejected)
    return -F.logsigmoid(BETA * (policy - reference)).mean()


model = PolicyLM()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(150):
    loss = -sequence_log_prob(model, walks(64)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"pretraining loss {loss.item() / (LENGTH - 1):.3f} per token")

adapter = [p for name, p in model.named_parameters() if name.endswith(("down", "up"))]
model.requires_grad_(False)
for p in adapter:
    p.requires_grad_(True)
for module in model.modules():
    if isinstance(module, AdaptedLinear):
        # pretraining used the adapters as well: keep that in the base and start the adapters afresh
        module.base.weight.add_(2.0 * module.up.detach() @ module.down.detach())
        module.up.data.zero_()

tuner = torch.optim.Adam(adapter, lr=3e-3)
for step in range(150):
    loss = preference_loss(model, *rated_pairs(64))
    tuner.zero_grad()
    loss.backward()
    tuner.step()

with torch.no_grad():
    chosen, rejected = rated_pairs(500)
    margin = (sequence_log_prob(model, chosen) - sequence_log_prob(model, rejected)).mean()
    fluency = -sequence_log_prob(model, walks(500)).mean() / (LENGTH - 1)
print(f"preferred against rejected: {margin.item():.2f} nats; loss on neutral walks {fluency.item():.3f} per token")
