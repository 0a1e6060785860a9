import torch
from torch import nn


class NextSong(nn.Module):
    def __init__(self, songs, dim):
        super().__init__()
        self.song = nn.Embedding(songs, dim)
        self.cell = nn.GRU(dim, dim, batch_first=True)
        self.score = nn.Linear(dim, songs, bias=False)
        self.score.weight = self.song.weight

    def load_vectors(self, table):
        self.song = nn.Embedding.from_pretrained(table, freeze=False)
        self.score.weight = self.song.weight

    def forward(self, history):
        states, _ = self.cell(self.song(history))
        return self.score(states)


def playlists(n, length, songs):
    start = torch.randint(0, songs, (n, 1))
    hop = torch.randint(1, 4, (n, 1))
    seq = (start + hop * torch.arange(length)) % songs
    noise = torch.rand(n, length) < 0.05
    return torch.where(noise, torch.randint(0, songs, (n, length)), seq)


def content_vectors(songs, dim):
    phase = torch.arange(songs).unsqueeze(1) * 2 * torch.pi / songs
    k = torch.arange(1, dim // 2 + 1)
    return torch.cat([torch.sin(k * phase), torch.cos(k * phase)], 1) * 0.3


def run():
    torch.manual_seed(21)
    songs, dim = 50, 16
    model = NextSong(songs, dim)
    model.load_vectors(content_vectors(songs, dim))
    opt = torch.optim.NAdam(model.parameters(), lr=4e-3)
    ce = nn.CrossEntropyLoss()
    for it in range(120):
        seq = playlists(32, 9, songs)
        logits = model(seq[:, :-1])
        loss = ce(logits.flatten(0, 1), seq[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if it % 30 == 29:
            print(f"iter {it + 1} loss {loss.item():.4f}")
    print("parameters", sum(p.numel() for p in model.parameters()))


run()
