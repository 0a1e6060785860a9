"""Two-tower contrastive training (caption / clip) with a large effective batch on little memory.

The batch is encoded in chunks without a graph, the loss is differentiated with respect to the embeddings, and a
second pass over the chunks carries these gradients into the towers.
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class RngState:
    """Replays the random state of an earlier forward pass (dropout)."""

    def __init__(self):
        self.state = torch.get_rng_state()

    def __enter__(self):
        self.outside = torch.get_rng_state()
        torch.set_rng_state(self.state)

    def __exit__(self, *exc):
        torch.set_rng_state(self.outside)


class Tower(nn.Module):
    def __init__(self, d_in, d_out, hidden=64, p=0.1):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, hidden), nn.GELU(), nn.Dropout(p), nn.LayerNorm(hidden),
                                 nn.Linear(hidden, d_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class ContrastiveLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(10.0).log())

    def forward(self, a, b):
        logits = self.logit_scale.exp() * a @ b.T
        target = torch.arange(len(a))
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


class CachedStep:
    def __init__(self, towers, loss_fn, chunk):
        self.towers, self.loss_fn, self.chunk = towers, loss_fn, chunk

    @torch.no_grad()
    def encode(self, tower, x):
        states, parts = [], []
        for piece in x.split(self.chunk):
            states.append(RngState())
            parts.append(tower(piece))
        return torch.cat(parts), states

    def __call__(self, *inputs):
        encoded = [self.encode(t, x) for t, x in zip(self.towers, inputs)]
        leaves = [e.detach().requires_grad_() for e, _ in encoded]
        loss = self.loss_fn(*leaves)
        loss.backward()
        for tower, x, leaf, (_, states) in zip(self.towers, inputs, leaves, encoded):
            for piece, grad, state in zip(x.split(self.chunk), leaf.grad.split(self.chunk), states):
                with state:
                    out = tower(piece)
                (out * grad).sum().backward()
        return loss.detach()


def pairs(n, mix_a, mix_b, gen):
    z = torch.randn(n, 8, generator=gen)
    a = torch.tanh(z @ mix_a) + 0.2 * torch.randn(n, mix_a.shape[1], generator=gen)
    b = torch.tanh(z @ mix_b) + 0.2 * torch.randn(n, mix_b.shape[1], generator=gen)
    return a, b


def recall_at_1(towers, a, b):
    for t in towers:
        t.eval()
    with torch.no_grad():
        hit = (towers[0](a) @ towers[1](b).T).argmax(1) == torch.arange(len(a))
    for t in towers:
        t.train()
    return hit.float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--chunk", type=int, default=64)
    ap.add_argument("--steps", type=int, default=150)
    args = ap.parse_args([])
    torch.manual_seed(13)
    gen = torch.Generator().manual_seed(14)
    mix_a, mix_b = torch.randn(8, 24, generator=gen), torch.randn(8, 20, generator=gen)
    towers, loss_fn = [Tower(24, 16), Tower(20, 16)], ContrastiveLoss()
    opt = torch.optim.AdamW([p for m in (*towers, loss_fn) for p in m.parameters()], lr=2e-3)
    step_fn, val = CachedStep(towers, loss_fn, args.chunk), pairs(500, mix_a, mix_b, gen)
    for step in range(1, args.steps + 1):
        opt.zero_grad()
        loss = step_fn(*pairs(256, mix_a, mix_b, gen))
        opt.step()
        if step % 30 == 0:
            print(f"step {step} loss {loss:.3f} recall@1 {recall_at_1(towers, *val):.3f}")


if __name__ == "__main__":
    main()
