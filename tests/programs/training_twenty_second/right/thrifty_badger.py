"""Full-parameter fine-tuning with the optimizer step fused into backward: only one gradient is alive at a time."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, SEQ = 20, 12


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.heads = heads

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class TinyLM(nn.Module):
    def __init__(self, dim=32, heads=4, layers=2):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, dim), nn.Embedding(SEQ, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB, bias=False)
        self.head.weight = self.tok.weight
        nn.init.normal_(self.tok.weight, std=0.1)

    def forward(self, ids):
        h = self.tok(ids) + self.pos(torch.arange(ids.size(1)))
        return self.head(self.norm(self.blocks(h)))


class FusedBackward:
    """One AdamW per parameter, stepped as soon as its gradient is complete."""

    def __init__(self, model, lr, weight_decay):
        self.opts = {}
        for p in model.parameters():
            decay = weight_decay if p.ndim > 1 else 0.0
            self.opts[p] = torch.optim.AdamW([p], lr=lr, weight_decay=decay, foreach=False)
            p.register_post_accumulate_grad_hook(self._on_grad)

    def _on_grad(self, p):
        p.grad.clamp_(-1.0, 1.0)
        self.opts[p].step()
        p.grad = None

    def set_lr(self, lr):
        for opt in self.opts.values():
            for group in opt.param_groups:
                group["lr"] = lr


def make_batch(n, generator, stride):
    """Arithmetic progressions modulo VOCAB; the stride set differs between pretraining and fine-tuning."""
    start = torch.randint(VOCAB, (n, 1), generator=generator)
    step = torch.tensor(stride)[torch.randint(len(stride), (n, 1), generator=generator)]
    seq = (start + step * torch.arange(SEQ + 1)) % VOCAB
    return seq[:, :-1], seq[:, 1:]


def lm_loss(model, batch):
    ids, target = batch
    return F.cross_entropy(model(ids).flatten(0, 1), target.flatten())


def train(model, stride, steps, peak_lr, seed, tag):
    g = torch.Generator().manual_seed(seed)
    fused = FusedBackward(model, lr=peak_lr, weight_decay=0.01)
    for step in range(steps):
        fused.set_lr(peak_lr * min(1.0, (step + 1) / 20) * (1 - step / steps))
        loss = lm_loss(model, make_batch(64, g, stride))
        loss.backward()
        if step % 60 == 59:
            print(f"[{tag}] step {step + 1:3d}  loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    model = TinyLM()
    held_out = make_batch(256, torch.Generator().manual_seed(99), (3, 7))
    before = lm_loss(model, held_out).item()
    train(model, (3, 7), steps=240, peak_lr=4e-3, seed=1, tag="train")
    with torch.no_grad():
        after = lm_loss(model, held_out).item()
    print(f"held-out loss {before:.3f} -> {after:.3f}")


if __name__ == "__main__":
    main()
