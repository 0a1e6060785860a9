import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Adapter(nn.Module):
    def __init__(self, dim, rank=4):
        super().__init__()
        self.down = nn.Linear(dim, rank, bias=False)
        self.up = nn.Linear(rank, dim, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return x + self.up(F.gelu(self.down(x)))


class Layer(nn.Module):
    def __init__(self, dim, dropout=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.fc = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.drop = nn.Dropout(dropout)
        self.adapter = Adapter(dim)

    def forward(self, x):
        h = self.norm(x)
        x = x + self.drop(self.attn(h, h, h, need_weights=False)[0])
        return self.adapter(x + self.drop(self.fc(x)))


class Encoder(nn.Module):
    def __init__(self, vocab=50, dim=32, depth=3, classes=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Layer(dim) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def freeze_base(self):
        self.requires_grad_(False)
        for name, module in self.named_modules():
            if isinstance(module, Adapter) or name == "head":
                module.requires_grad_(True)
        return self

    def forward(self, ids):
        with torch.no_grad():
            h = self.embed(ids)
        for layer in self.layers:
            if self.training:
                h = checkpoint(layer, h, use_reentrant=False)
            else:
                h = layer(h)
        return self.head(h.mean(dim=1))


def make_batch(size=32, length=10, vocab=50):
    ids = torch.randint(0, vocab, (size, length))
    return ids, (ids < 20).sum(dim=1).clamp(2, 5) - 2


def main(steps=50):
    torch.manual_seed(0)
    model = Encoder().freeze_base().train()
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=5e-3, weight_decay=0.0)
    for step in range(steps):
        ids, label = make_batch()
        loss = F.cross_entropy(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print("trainable", sum(p.numel() for p in trainable), "of", sum(p.numel() for p in model.parameters()))
    return model


if __name__ == "__main__":
    model = main()
