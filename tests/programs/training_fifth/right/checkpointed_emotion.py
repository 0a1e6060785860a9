"""Emotion from speech: recurrent layers recomputed in the backward pass, behind an embedding of the codec tokens."""
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

warnings.filterwarnings("ignore", category=FutureWarning)
torch.set_num_threads(1)
torch.manual_seed(4)

TOKENS, LENGTH, CLASSES = 30, 24, 4
style = torch.randint(TOKENS, (CLASSES, 5))


def make_batch(n):
    labels = torch.randint(CLASSES, (n,))
    tokens = torch.randint(TOKENS, (n, LENGTH))
    choose = torch.rand(n, LENGTH) < 0.3
    tokens[choose] = style[labels][:, torch.randint(5, (LENGTH,))][choose]
    return tokens, labels


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(LENGTH, LENGTH)
        self.dropout = nn.Dropout(0.1)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.mix(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.dropout(self.feed(x))


class EmotionNet(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, width)  # its output requires a gradient, so recomputation has one to return
        self.layers = nn.ModuleList(Residual(width) for _ in range(depth))
        self.out = nn.Linear(width, CLASSES)

    def forward(self, tokens):
        h = self.embed(tokens)
        for layer in self.layers:
            if self.training and torch.is_grad_enabled():
                h = checkpoint(layer, h, use_reentrant=True, preserve_rng_state=True)
            else:
                h = layer(h)
        return self.out(h.mean(1))


model = EmotionNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=150)
for step in range(1, 151):
    model.train()
    tokens, labels = make_batch(64)
    loss = F.cross_entropy(model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 30 == 0:
        model.eval()
        with torch.no_grad():
            tokens, labels = make_batch(500)
            accuracy = (model(tokens).argmax(-1) == labels).float().mean().item()
        print(f"step {step:3d}  loss {loss.item():.3f}  accuracy {accuracy:.3f}")
