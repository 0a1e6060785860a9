import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class SparseMoE(nn.Module):
    def __init__(self, dim, n_experts=4, k=1, hidden=24):
        super().__init__()
        self.router = nn.Linear(dim, n_experts, bias=False)
        self.experts = nn.ModuleList(Expert(dim, hidden) for _ in range(n_experts))
        self.k = k
        self.balance = None

    def route(self, x):
        probs = self.router(x).softmax(dim=-1)
        top, index = probs.topk(self.k, dim=-1)
        top = top / top.sum(dim=-1, keepdim=True)
        load = F.one_hot(index, len(self.experts)).float().sum(dim=1).mean(dim=0)
        self.balance = len(self.experts) * (load * probs.mean(dim=0)).sum()
        return top, index

    def forward(self, x):
        weight, index = self.route(x)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            token, slot = (index == e).nonzero(as_tuple=True)
            if token.numel():
                out = out.index_add(0, token, weight[token, slot, None] * expert(x[token]))
        return out


class LogClassifier(nn.Module):
    def __init__(self, n_in=12, dim=16, n_classes=4):
        super().__init__()
        self.embed = nn.Linear(n_in, dim)
        self.layers = nn.ModuleList(SparseMoE(dim) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2))
        self.head = nn.Linear(dim, n_classes)

    def forward(self, x):
        h = self.embed(x)
        for norm, layer in zip(self.norms, self.layers):
            h = h + layer(norm(h))
        return self.head(h)

    def auxiliary(self):
        return sum(layer.balance for layer in self.layers) / len(self.layers)


def make_logs(n=256, n_in=12):
    service = torch.randint(0, 4, (n,))
    x = torch.randn(n, n_in)
    x[torch.arange(n), service] += 2.5
    score = x[:, 4:8].roll(1, dims=1) * (1 - 2 * (service[:, None] % 2).float())
    return x, score.argmax(dim=1)


def main(steps=80, aux_weight=0.01):
    torch.manual_seed(0)
    x, y = make_logs()
    model = LogClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    for step in range(steps):
        idx = torch.randint(0, len(x), (64,))
        task = F.cross_entropy(model(x[idx]), y[idx])
        loss = task + aux_weight * model.auxiliary()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} task {task.item():.4f} balance {model.auxiliary().item():.3f}")
    return model, (x, y)


if __name__ == "__main__":
    model, data = main()
