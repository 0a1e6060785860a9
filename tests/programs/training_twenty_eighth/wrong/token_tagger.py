"""Sequence tagging with a GRU; the run is split in two parts, with a checkpoint between them."""
import os
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

VOCAB, TAGS, LENGTH = 30, 5, 12
TOTAL_STEPS = 120


def make_batch(size, generator):
    """A tag depends on the token and on the one before it."""
    tokens = torch.randint(0, VOCAB, (size, LENGTH), generator=generator)
    previous = torch.roll(tokens, 1, dims=1)
    previous[:, 0] = 0
    tags = (tokens // 3 + previous % 2) % TAGS
    return tokens, tags


class Tagger(nn.Module):
    def __init__(self, dim=24, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.encoder = nn.GRU(dim, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, TAGS)

    def forward(self, tokens):
        states, _ = self.encoder(self.embed(tokens))
        return self.head(self.norm(states))


class Trainer:
    def __init__(self, generator):
        self.generator = generator
        self.model = Tagger()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-3)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / 10) * (1 - 0.8 * step / TOTAL_STEPS))
        self.step = 0
        self.losses = []

    def fit(self, until):
        self.model.train()
        while self.step < until:
            tokens, tags = make_batch(32, self.generator)
            logits = self.model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            self.step += 1
            self.losses.append(loss.item())
            if self.step % 20 == 0:
                lr = self.scheduler.get_last_lr()[0]
                print(f"step {self.step:4d}  loss {loss.item():.4f}  lr {lr:.5f}")

    def save(self, path):
        torch.save({
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "generator": self.generator.get_state(),
            "step": self.step,
        }, path)

    def load(self, path):
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(checkpoint["model"], strict=True, assign=True)
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.scheduler.load_state_dict(checkpoint["scheduler"])
        self.generator.set_state(checkpoint["generator"])
        self.step = checkpoint["step"]


@torch.no_grad()
def accuracy(model, generator):
    model.eval()
    tokens, tags = make_batch(256, generator)
    return (model(tokens).argmax(-1) == tags).float().mean().item()


def main():
    torch.manual_seed(3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tagger.pt")
        first = Trainer(torch.Generator().manual_seed(17))
        first.fit(until=40)
        first.save(path)
        print(f"saved at step {first.step}, accuracy {accuracy(first.model, torch.Generator().manual_seed(1)):.3f}")

        second = Trainer(torch.Generator())
        second.load(path)
    second.fit(until=TOTAL_STEPS)
    print(f"finished at step {second.step}, accuracy {accuracy(second.model, torch.Generator().manual_seed(1)):.3f}")
    return first, second


if __name__ == "__main__":
    first, second = main()
