"""Sparse mixture of experts for household electricity bills: customers fall into a few tariff regimes."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

N_FEATURES = 8
N_REGIMES = 4
STEPS = 200
BATCH = 128


def make_customers(n, generator):
    """Two usage features set the regime; in each regime the bill is another linear function of the features."""
    x = torch.randn(n, N_FEATURES, generator=generator)
    angle = torch.atan2(x[:, 1], x[:, 0])
    regime = ((angle + math.pi) / (2 * math.pi) * N_REGIMES).long().clamp(max=N_REGIMES - 1)
    rates = 1.5 * torch.randn(N_REGIMES, N_FEATURES, generator=torch.Generator().manual_seed(7))
    bill = (x * rates[regime]).sum(-1, keepdim=True)
    return x, bill + 0.1 * torch.randn(n, 1, generator=generator)


class Expert(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class SparseMoE(nn.Module):
    """Each row goes to its `top_k` experts; their outputs are summed with the gate weights."""

    def __init__(self, width, n_experts=6, hidden=6, top_k=1):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, n_experts))
        self.experts = nn.ModuleList(Expert(width, hidden) for _ in range(n_experts))

    def route(self, x):
        logits = self.router(x)
        top_logits, index = logits.topk(self.top_k, dim=-1)
        gate = F.softmax(top_logits, dim=-1)
        return gate, index

    def forward(self, x):
        gate, index = self.route(x)
        out = x.new_zeros(len(x), 1)
        for number, expert in enumerate(self.experts):
            row, slot = (index == number).nonzero(as_tuple=True)
            if row.numel() == 0:
                continue
            out = out.index_add(0, row, gate[row, slot].unsqueeze(-1) * expert(x[row]))
        return out


def batches(x, y, steps, generator):
    for _ in range(steps):
        pick = torch.randint(0, len(x), (BATCH,), generator=generator)
        yield x[pick], y[pick]


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    error = F.mse_loss(model(x), y).item()
    _, index = model.route(x)
    share = torch.bincount(index[:, 0], minlength=len(model.experts)).float() / len(x)
    model.train()
    return error, share


def main():
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(3)
    x_train, y_train = make_customers(3000, generator)
    x_valid, y_valid = make_customers(1000, generator)

    model = SparseMoE(N_FEATURES)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)

    running = 0.0
    for step, (x, y) in enumerate(batches(x_train, y_train, STEPS, generator), start=1):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        running += loss.item()
        if step % 50 == 0:
            error, _ = evaluate(model, x_valid, y_valid)
            print(f"step {step:4d}  train {running / 50:7.3f}  valid {error:7.3f}")
            running = 0.0

    error, share = evaluate(model, x_valid, y_valid)
    print("variance of the bills", round(y_valid.var().item(), 3))
    print("share of the experts ", [round(s, 2) for s in share.tolist()])
    return model, error


if __name__ == "__main__":
    model, valid_error = main()
