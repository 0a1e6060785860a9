"""DPO with low rank adapters: the reference policy is the same network with its adapters switched off."""
import contextlib
import math

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LENGTH, DIM, RANK = 24, 9, 32, 4


class LoRALinear(nn.Module):
    """A frozen linear map plus a low rank update that starts at zero."""

    def __init__(self, base, rank, scale=2.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale, self.active = scale, True

    def forward(self, x):
        out = self.base(x)
        if self.active:
            out = out + self.scale * F.linear(F.linear(x, self.down), self.up)
        return out


class TinyLM(nn.Module):
    """Tied embedding language model over a decayed average of the past words."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.inner = nn.Linear(2 * DIM, DIM)
        self.outer = nn.Linear(DIM, DIM)
        nn.init.normal_(self.embed.weight, std=0.3)
        steps = torch.arange(LENGTH - 1)
        lag = (steps[:, None] - steps[None, :]).clamp(min=0)
        weights = torch.tril(0.7**lag)
        self.register_buffer("past", weights / weights.sum(1, keepdim=True), persistent=False)

    def forward(self, ids):
        x = self.embed(ids)
        x = torch.cat([x, self.past @ x], dim=-1)
        return F.linear(self.outer(F.gelu(self.inner(x))), self.embed.weight)


def token_logps(model, text):
    logps = F.log_softmax(model(text[:, :-1]), dim=-1)
    return logps.gather(-1, text[:, 1:].unsqueeze(-1)).squeeze(-1)


def sequence_logps(model, text):
    return token_logps(model, text).sum(dim=-1)


@contextlib.contextmanager
def adapters_off(model):
    layers = [m for m in model.modules() if isinstance(m, LoRALinear)]
    for layer in layers:
        layer.active = False
    try:
        yield
    finally:
        for layer in layers:
            layer.active = True


def dpo_loss(model, chosen, rejected, beta=0.1):
    both = torch.cat([chosen, rejected])
    with torch.no_grad(), adapters_off(model):
        reference = sequence_logps(model, both)
    chosen_ratio, rejected_ratio = (sequence_logps(model, both) - reference).chunk(2)
    loss = -F.logsigmoid(beta * (chosen_ratio - rejected_ratio)).mean()
    return loss, (chosen_ratio - rejected_ratio).detach()


def sample_pairs(table, count, generator):
    """Two texts of the language; the one with more of the even words is preferred."""
    text = [torch.randint(VOCAB, (2 * count,), generator=generator)]
    for _ in range(LENGTH - 1):
        text.append(torch.multinomial(table[text[-1]], 1, generator=generator).squeeze(1))
    first, second = torch.stack(text, dim=1).chunk(2)
    swap = ((first % 2 == 0).sum(1) < (second % 2 == 0).sum(1)).unsqueeze(1)
    return torch.where(swap, second, first), torch.where(swap, first, second)


torch.manual_seed(2)
generator = torch.Generator().manual_seed(14)
table = torch.softmax(1.5 * torch.randn(VOCAB, VOCAB, generator=generator), dim=-1)
model = TinyLM()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(80):
    text = torch.cat(sample_pairs(table, 16, generator))
    loss = -token_logps(model, text).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"pretraining loss {loss.item():.3f}")

model.requires_grad_(False)
model.inner, model.outer = LoRALinear(model.inner, RANK), LoRALinear(model.outer, RANK)
trainable = [p for p in model.parameters() if p.requires_grad]
print("trainable parameters", sum(p.numel() for p in trainable))
optimizer = torch.optim.AdamW(trainable, lr=5e-3, weight_decay=0.0)
history = []
for step in range(100):
    loss, gap = dpo_loss(model, *sample_pairs(table, 24, generator))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    if step % 30 == 0:
        print(f"step {step:3d}  dpo loss {loss.item():.4f}  log ratio gap {gap.mean().item():.3f}")
with torch.no_grad():
    loss, gap = dpo_loss(model, *sample_pairs(table, 300, generator))
print(f"held out loss {loss.item():.4f}  preferred {(gap > 0).float().mean().item():.3f}")
