"""A tiny causal transformer on a copy task, trained with a hand-written AdamW and a warmup-cosine schedule."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MyAdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        lr = self.defaults["lr"]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                state["exp_avg"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                m_hat = state["exp_avg"] / (1 - beta1 ** state["step"])
                v_hat = state["exp_avg_sq"] / (1 - beta2 ** state["step"])
                p.mul_(1 - lr * group["weight_decay"])
                p.addcdiv_(m_hat, v_hat.sqrt().add_(group["eps"]), value=-lr)
        return loss


class TinyTransformer(nn.Module):
    def __init__(self, vocab=12, dim=32, heads=2, layers=2, length=16):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.position = nn.Parameter(0.02 * torch.randn(length, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 64, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(dim, vocab)
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, tokens):
        n = tokens.size(1)
        h = self.token(tokens) + self.position[:n]
        return self.head(self.blocks(h, mask=self.mask[:n, :n]))


def copy_batch(batch, half=7, vocab=12):
    seq = torch.randint(1, vocab, (batch, half))
    sep = torch.zeros(batch, 1, dtype=torch.long)
    return torch.cat([seq, sep, seq], dim=1)


def warmup_cosine(step, warmup=30, total=250):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


torch.manual_seed(13)
model = TinyTransformer()
decay = [p for p in model.parameters() if p.dim() > 1]
no_decay = [p for p in model.parameters() if p.dim() <= 1]
optimizer = MyAdamW([{"params": decay}, {"params": no_decay, "weight_decay": 0.0}], lr=4e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_cosine)
for step in range(250):
    seq = copy_batch(32)
    logits = model(seq[:, :-1])
    loss = F.cross_entropy(logits[:, 7:].reshape(-1, 12), seq[:, 8:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.3f} lr {scheduler.get_last_lr()[0]:.5f}")
