import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, dim, heads, drop):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(drop), nn.Linear(2 * dim, dim))
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.proj(mixed.transpose(1, 2).reshape(b, t, d)))
        return x + self.drop(self.ff(self.norm2(x)))


class EventModel(nn.Module):
    def __init__(self, events, dim=32, depth=3, heads=4, drop=0.2, length=16, save_memory=True):
        super().__init__()
        self.embed = nn.Embedding(events, dim)
        self.position = nn.Parameter(0.02 * torch.randn(length, dim))
        self.layers = nn.ModuleList([Layer(dim, heads, drop) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, events)
        self.save_memory = save_memory

    def forward(self, ids):
        x = self.embed(ids) + self.position[: ids.shape[1]]
        for layer in self.layers:
            if self.save_memory and self.training:
                x = checkpoint(layer, x, use_reentrant=False, preserve_rng_state=False)
            else:
                x = layer(x)
        return self.head(self.norm(x))


def sequences(count, events, length):
    start = torch.randint(0, events, (count, 1))
    stride = torch.randint(1, 4, (count, 1))
    return (start + stride * torch.arange(length + 1)) % events


def evaluate(model, batch):
    model.eval()
    with torch.no_grad():
        logits = model(batch[:, :-1])
    model.train()
    return (logits.argmax(-1) == batch[:, 1:]).float().mean().item()


def main():
    torch.manual_seed(0)
    data = sequences(128, 10, 16)
    model = EventModel(10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step in range(24):
        batch = data[torch.randint(0, len(data), (24,))]
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 7:
            print(f"step {step + 1} loss {loss.item():.4f} next-event acc {evaluate(model, data):.3f}")
    return model


if __name__ == "__main__":
    model = main()
