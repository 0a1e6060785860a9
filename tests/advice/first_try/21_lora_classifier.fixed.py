import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scaling = alpha / rank
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(x, self.lora_a), self.lora_b)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, h):
        return h + self.down(F.gelu(self.up(self.norm(h))))


class TextModel(nn.Module):
    def __init__(self, vocab=60, dim=24, depth=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)
        self.ckpt_kwargs = None

    def enable_checkpointing(self, **kwargs):
        self.ckpt_kwargs = kwargs

    def forward(self, ids):
        h = self.embed(ids)
        for block in self.blocks:
            if self.ckpt_kwargs is not None and self.training:
                h = checkpoint(block, h, **self.ckpt_kwargs)
            else:
                h = block(h)
        return self.head(self.norm(h))


def inject(model, names=("up", "down")):
    for block in model.blocks:
        for name in names:
            setattr(block, name, LoRALinear(getattr(block, name)))
    for name, p in model.named_parameters():
        p.requires_grad = "lora_" in name
    return model


def batches(n, vocab):
    g = torch.Generator().manual_seed(5)
    for _ in range(n):
        start = torch.randint(0, vocab, (8, 1), generator=g)
        seq = (start + torch.arange(11)) % vocab
        yield seq[:, :-1], seq[:, 1:]


def main():
    torch.manual_seed(0)
    model = inject(TextModel())
    model.enable_checkpointing(use_reentrant=False, preserve_rng_state=False)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print("trainable", sum(p.numel() for p in trainable))
    opt = torch.optim.AdamW(trainable, lr=2e-2)
    model.train()
    for step, (x, y) in enumerate(batches(12, 60)):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
