"""Next-track recommendation from listening sessions of uneven length."""
import math

import torch
import torch.nn.functional as F
from torch import nn

TRACKS, GENRES, PAD, MAXLEN = 240, 8, 0, 16


def sessions(n, genre_of, popularity, gen):
    """Padded histories, the next track, and the history lengths."""
    taste = torch.randint(0, GENRES, (n, 2), generator=gen)
    length = torch.randint(1, MAXLEN + 1, (n,), generator=gen)
    weight = torch.full((n, TRACKS), 0.08)
    for k in range(2):
        weight = weight + (genre_of[None] == taste[:, k:k + 1]).float()
    drawn = torch.multinomial(weight * popularity, MAXLEN + 1, generator=gen) + 1
    keep = torch.arange(MAXLEN)[None] < length[:, None]
    history = torch.where(keep, drawn[:, :MAXLEN], torch.full_like(drawn[:, :MAXLEN], PAD))
    return history, drawn[:, MAXLEN], length


class SessionEncoder(nn.Module):
    def __init__(self, dim=32, drop=0.1):
        super().__init__()
        self.items = nn.Embedding(TRACKS + 1, dim, padding_idx=PAD)
        self.bias = nn.Parameter(torch.zeros(TRACKS + 1))
        self.mix = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(drop), nn.Linear(2 * dim, dim))
        self.norm = nn.LayerNorm(dim)
        self.apply(self._init)

    @staticmethod
    def _init(module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.5)

    def user(self, history):
        bag = self.items(history).sum(dim=1)
        return self.norm(bag + self.mix(bag / math.sqrt(history.shape[1])))

    def forward(self, history):
        logits = self.user(history) @ self.items.weight.T + self.bias
        logits[:, PAD] = -1e4
        return logits


@torch.no_grad()
def recall(model, history, target, k=20):
    model.eval()
    scores = model(history)
    rows = torch.arange(len(history))[:, None].expand_as(history)
    scores[rows, history] = -1e4
    top = scores.topk(k, dim=1).indices
    return (top == target[:, None]).any(dim=1).float()


def main(epochs=14, batch=128):
    torch.manual_seed(17)
    gen = torch.Generator().manual_seed(17)
    genre_of = torch.randint(0, GENRES, (TRACKS,), generator=gen)
    popularity = torch.rand(TRACKS, generator=gen) ** 2 + 0.05
    history, target, length = sessions(3000, genre_of, popularity, gen)
    held = sessions(1500, genre_of, popularity, gen)
    model = SessionEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=40)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(history), generator=gen).split(batch):
            loss = F.cross_entropy(model(history[idx]), target[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(idx) / len(history)
        if epoch % 3 == 0:
            print(f"{epoch:3d}  loss {total:.3f}  recall@20 {recall(model, held[0], held[1]).mean().item():.3f}")
    hit = recall(model, held[0], held[1])
    short, long = hit[held[2] <= 4].mean().item(), hit[held[2] > 8].mean().item()
    return model, hit.mean().item(), short, long


if __name__ == "__main__":
    model, overall, short, long = main()
    print(f"recall@20 {overall:.3f}  short sessions {short:.3f}  long sessions {long:.3f}")
