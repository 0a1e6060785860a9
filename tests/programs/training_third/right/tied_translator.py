import torch
from torch import nn
import torch.nn.functional as F


class GlossModel(nn.Module):
    def __init__(self, vocab=20, width=24):
        super().__init__()
        self.source = nn.Embedding(vocab, width)
        self.target = nn.Embedding(vocab, width)
        self.mixer = nn.GRU(width, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab)
        for m in (self.source, self.target, self.head):
            nn.init.normal_(m.weight, std=0.1)
        self.source.weight = self.target.weight
        self.head.weight = self.target.weight

    def forward(self, src, tgt):
        memory = self.source(src).mean(1, keepdim=True)
        states, _ = self.mixer(self.target(tgt) + memory)
        return self.head(self.norm(states))


def parameter_groups(model, weight_decay):
    seen, decay, plain = set(), [], []
    for name, p in model.named_parameters(remove_duplicate=False):
        if id(p) in seen:
            continue
        seen.add(id(p))
        (plain if p.ndim < 2 or "norm" in name else decay).append(p)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def sentences(n, g):
    src = torch.randint(1, 20, (n, 6), generator=g)
    tgt = (src.flip(1) + 1) % 20
    return src, F.pad(tgt[:, :-1], (1, 0)), tgt


def fit(model, data, steps=40):
    opt = torch.optim.AdamW(parameter_groups(model, 0.05), lr=5e-3)
    src, shifted, tgt = data
    for step in range(steps):
        rows = torch.arange(step * 32, step * 32 + 32) % len(src)
        loss = F.cross_entropy(model(src[rows], shifted[rows]).flatten(0, 1), tgt[rows].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    return opt


if __name__ == "__main__":
    torch.manual_seed(0)
    model = GlossModel()
    opt = fit(model, sentences(320, torch.Generator().manual_seed(1)))
    print("saved", sorted(k for k in model.state_dict() if k.endswith("weight")))
    print("optimised", sum(p.numel() for group in opt.param_groups for p in group["params"]))
