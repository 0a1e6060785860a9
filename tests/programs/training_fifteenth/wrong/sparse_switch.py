"""Switch-style mixture of experts on a mixture of regression regimes.

Every sample belongs to one of six hidden regimes (a region of the input space); each regime has its own linear map.
A router sends every sample to one expert, so the layer should learn to cut the space into regimes.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
DIM, OUT, REGIMES, EXPERTS, TOP_K = 8, 4, 6, 6, 1


def make_data(n, centres, maps, generator):
    regime = torch.randint(0, REGIMES, (n,), generator=generator)
    x = centres[regime] + 0.5 * torch.randn(n, DIM, generator=generator)
    y = torch.einsum("nd,ndo->no", x, maps[regime]) + 0.02 * torch.randn(n, OUT, generator=generator)
    return x, y


class Expert(nn.Module):
    def __init__(self, dim, hidden, out):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, out)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class SwitchLayer(nn.Module):
    """Sparse layer: the top-k experts of a sample are run, their outputs are mixed by the gate weights."""

    def __init__(self, dim, out, n_experts, top_k, hidden=10):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(dim, n_experts)
        self.experts = nn.ModuleList(Expert(dim, hidden, out) for _ in range(n_experts))

    def forward(self, x):
        logits = self.router(x)
        top_logits, chosen = logits.topk(self.top_k, dim=-1)
        gates = F.softmax(top_logits, dim=-1)
        out = x.new_zeros(x.shape[0], self.experts[0].down.out_features)
        for e, expert in enumerate(self.experts):
            rows, slot = (chosen == e).nonzero(as_tuple=True)
            if rows.numel() == 0:
                continue
            mixed = expert(x[rows]) * gates[rows, slot].unsqueeze(-1)
            out = out.index_add(0, rows, mixed)
        return out, chosen


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.moe = SwitchLayer(DIM, OUT, EXPERTS, TOP_K)
        self.skip = nn.Linear(DIM, OUT)

    def forward(self, x):
        mixed, chosen = self.moe(self.norm(x))
        return self.skip(x) + mixed, chosen


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        pred, chosen = model(x)
        load = torch.bincount(chosen.flatten(), minlength=EXPERTS).float() / chosen.numel()
    model.train()
    return F.mse_loss(pred, y).item(), load


gen = torch.Generator().manual_seed(11)
centres = 1.5 * torch.randn(REGIMES, DIM, generator=gen)
maps = torch.randn(REGIMES, DIM, OUT, generator=gen) / DIM ** 0.5
train_x, train_y = make_data(3000, centres, maps, gen)
test_x, test_y = make_data(1000, centres, maps, gen)

model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=600)

for step in range(600):
    batch = torch.randint(0, train_x.shape[0], (128,), generator=gen)
    pred, _ = model(train_x[batch])
    loss = F.mse_loss(pred, train_y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 150 == 0:
        print(f"step {step:4d}  train mse {loss.item():.4f}")

test_mse, load = evaluate(model, test_x, test_y)
print(f"test mse {test_mse:.4f}")
print("expert load", [round(v, 2) for v in load.tolist()])
