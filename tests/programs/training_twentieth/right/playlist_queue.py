"""Next-song retrieval: a two-tower model whose negatives come from a queue of songs encoded by a slow copy of the tower."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(41)

SONGS, AUDIO, TAGS, HISTORY, DIM, QUEUE = 400, 16, 12, 6, 24, 256
TEMPERATURE, SLOW = 0.1, 0.95


def make_catalogue(generator):
    audio = torch.randn(SONGS, AUDIO, generator=generator)
    tag = (audio @ torch.randn(AUDIO, TAGS, generator=generator)).argmax(1)
    return audio, tag, F.normalize(audio @ torch.randn(AUDIO, 4, generator=generator), dim=1)


def make_sessions(n, mood, generator):
    wish = F.normalize(torch.randn(n, 4, generator=generator), dim=1)
    pull = (6.0 * wish @ mood.T).softmax(1)
    songs = torch.multinomial(pull, HISTORY + 1, generator=generator)
    length = torch.randint(2, HISTORY + 1, (n,), generator=generator)
    heard = torch.arange(HISTORY) < length.unsqueeze(1)
    return songs[:, :HISTORY], heard, songs[:, HISTORY]


class SongTower(nn.Module):
    def __init__(self, audio, tag):
        super().__init__()
        self.register_buffer("audio", audio, persistent=False)
        self.register_buffer("tag", tag, persistent=False)
        self.tag_embedding = nn.Embedding(TAGS, 8)
        self.net = nn.Sequential(nn.Linear(AUDIO + 8, 64), nn.ReLU(), nn.Linear(64, DIM))

    def forward(self, song):
        return F.normalize(self.net(torch.cat([self.audio[song], self.tag_embedding(self.tag[song])], -1)), dim=-1)


class Retrieval(nn.Module):
    def __init__(self, tower):
        super().__init__()
        self.tower = tower
        self.session = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, DIM))
        self.slow_tower = copy.deepcopy(tower).requires_grad_(False)
        self.register_buffer("queue", torch.zeros(QUEUE, DIM))
        self.register_buffer("queue_song", torch.full((QUEUE,), -1))
        self.register_buffer("cursor", torch.zeros((), dtype=torch.long))

    def encode_session(self, songs, heard):
        mean = (self.tower(songs) * heard.unsqueeze(-1)).sum(1) / heard.sum(1, keepdim=True)
        return F.normalize(self.session(mean), dim=-1)

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.slow_tower.parameters(), self.tower.parameters()):
            slow.lerp_(fast, 1 - SLOW)

    @torch.no_grad()
    def enqueue(self, song):
        place = (self.cursor + torch.arange(len(song))) % QUEUE
        self.queue[place] = self.slow_tower(song)
        self.queue_song[place] = song
        self.cursor.copy_((self.cursor + len(song)) % QUEUE)

    def loss(self, songs, heard, next_song):
        query = self.encode_session(songs, heard)
        positive = (query * self.slow_tower(next_song)).sum(1, keepdim=True)
        negative = query @ self.queue.clone().T
        # Empty places and copies of the wanted song are no negatives.
        unusable = (self.queue_song < 0) | (self.queue_song == next_song.unsqueeze(1))
        logits = torch.cat([positive, negative.masked_fill(unusable, float("-inf"))], 1) / TEMPERATURE
        return F.cross_entropy(logits, torch.zeros(len(query), dtype=torch.long))


@torch.no_grad()
def recall(model, songs, heard, next_song, k=20):
    model.eval()
    scores = model.encode_session(songs, heard) @ model.slow_tower(torch.arange(SONGS)).T
    seen = songs.masked_fill(~heard, SONGS)
    scores = F.pad(scores, (0, 1)).scatter(1, seen, float("-inf"))[:, :SONGS]
    return (scores.topk(k).indices == next_song.unsqueeze(1)).any(1).float().mean().item()


def main():
    g = torch.Generator().manual_seed(10)
    audio, tag, mood = make_catalogue(g)
    train, test = make_sessions(4000, mood, g), make_sessions(1000, mood, g)
    model = Retrieval(SongTower(audio, tag))
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=2e-3)
    for _ in range(QUEUE // 64):
        model.enqueue(torch.randint(0, SONGS, (64,)))
    for epoch in range(8):
        model.train()
        total = 0.0
        for idx in torch.randperm(4000).split(64):
            songs, heard, next_song = (t[idx] for t in train)
            loss = model.loss(songs, heard, next_song)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.follow()
            model.enqueue(next_song)
            total += loss.item() * len(idx)
        print(f"epoch {epoch}  loss {total / 4000:.4f}  recall@20 {recall(model, *test):.3f}")


if __name__ == "__main__":
    main()
