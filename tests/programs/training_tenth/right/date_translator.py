"""Seq2seq that rewrites dates (17.03.24 -> 24-03-17 as tokens) with scheduled sampling and per-parameter updates
that run during backward, so that no full set of gradients is ever kept."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 13
DIGITS = 10
BOS = 10
IN_LEN = 6
OUT_LEN = 6
STEPS = 280
BATCH = 64


def make_dates(n=3000):
    rng = np.random.default_rng(SEED)
    d, m, y = rng.integers(1, 29, n), rng.integers(1, 13, n), rng.integers(0, 100, n)
    split = lambda *parts: np.stack([f(p) for p in parts for f in (lambda v: v // 10, lambda v: v % 10)], axis=1)
    return torch.from_numpy(split(d, m, y)), torch.from_numpy(split(y, m, d))


class Translator(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.token = nn.Embedding(DIGITS + 1, dim)
        self.place = nn.Embedding(IN_LEN, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.cell = nn.GRUCell(2 * dim, dim)
        self.query = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, DIGITS + 1, bias=False)
        self.out.weight = self.token.weight
        self.mix = nn.Linear(2 * dim, dim)
        nn.init.normal_(self.token.weight, std=0.2)

    def forward(self, source, target=None, forcing=0.0):
        keys = self.token(source) + self.place.weight
        memory, h = self.encoder(keys)
        memory, h = memory + keys, h[0]
        word = torch.full_like(source[:, 0], BOS)
        logits = []
        for t in range(OUT_LEN):
            weight = torch.einsum("bd,bld->bl", self.query(h), memory).softmax(1)
            context = torch.einsum("bl,bld->bd", weight, memory)
            h = self.cell(torch.cat([self.token(word), context], 1), h)
            logits.append(self.out(torch.tanh(self.mix(torch.cat([h, context], 1)))))
            word = logits[-1].detach().argmax(1)
            if target is not None:
                word = torch.where(torch.rand(len(word)) < forcing, target[:, t], word)
        return torch.stack(logits, 1)


def attach_optimizers(model, lr):
    """One small Adam for each parameter: it steps as soon as its gradient is complete and drops the gradient."""
    optimizers = {p: torch.optim.Adam([p], lr=lr, betas=(0.9, 0.99)) for p in model.parameters()}

    def finish(p):
        p.grad.clamp_(-0.5, 0.5)
        optimizers[p].step()
        p.grad = None

    handles = [p.register_post_accumulate_grad_hook(finish) for p in optimizers]
    return optimizers, handles


@torch.no_grad()
def exact_match(model, source, target):
    return (model(source).argmax(2) == target).all(1).float().mean().item()


def main():
    torch.manual_seed(SEED)
    source, target = make_dates()
    train, test = slice(0, 2500), slice(2500, None)
    model = Translator()
    optimizers, handles = attach_optimizers(model, 8e-3)
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(o, STEPS, 1e-4) for o in optimizers.values()]
    before, losses = exact_match(model, source[test], target[test]), []
    for step in range(STEPS):
        index = torch.randint(2500, (BATCH,))
        logits = model(source[train][index], target[train][index], forcing=max(0.0, 1 - step / 150))
        loss = F.cross_entropy(logits.flatten(0, 1), target[train][index].flatten())
        loss.backward()
        for schedule in schedules:
            schedule.step()
        losses.append(loss.item())
    for handle in handles:
        handle.remove()
    print(f"loss {np.mean(losses[:20]):.3f} -> {np.mean(losses[-20:]):.4f}, "
          f"exact match {before:.3f} -> {exact_match(model, source[test], target[test]):.3f}")
    return model, optimizers


if __name__ == "__main__":
    model, optimizers = main()
