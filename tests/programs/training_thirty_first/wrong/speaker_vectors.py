"""Speaker vectors from utterance features.

An encoder is trained with the hardest positive and the hardest negative of each batch; it is tested on speakers that
were not in training, by comparing new utterances with one enrolled vector per speaker.
"""
import torch
from torch import nn
from torch.nn import functional as F

FEATURES = 32
VOICE = 6
CHANNEL = 10


class Recordings:
    """Utterance features: a part from the voice, a stronger part from the channel, and some noise."""

    def __init__(self, speakers, seed):
        self.generator = torch.Generator().manual_seed(seed)
        layout = torch.Generator().manual_seed(1)
        self.voice_map = torch.randn(VOICE, FEATURES, generator=layout)
        self.channel_map = 1.5 * torch.randn(CHANNEL, FEATURES, generator=layout)
        self.voices = torch.randn(speakers, VOICE, generator=self.generator)

    def utterances(self, speakers):
        channel = torch.randn(len(speakers), CHANNEL, generator=self.generator)
        noise = 0.2 * torch.randn(len(speakers), FEATURES, generator=self.generator)
        return self.voices[speakers] @ self.voice_map + channel @ self.channel_map + noise

    def batch(self, speakers_per_batch=8, per_speaker=4):
        chosen = torch.randperm(len(self.voices), generator=self.generator)[:speakers_per_batch]
        speakers = chosen.repeat_interleave(per_speaker)
        return self.utterances(speakers), speakers


class SpeakerEncoder(nn.Module):
    def __init__(self, width=64, size=16):
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES)
        self.hidden = nn.Linear(FEATURES, width)
        self.out = nn.Linear(width, size)

    def forward(self, features):
        hidden = F.relu(self.hidden(self.norm(features)))
        return F.normalize(self.out(hidden), dim=-1)


def pairwise_distances(vectors):
    difference = vectors.unsqueeze(1) - vectors.unsqueeze(0)
    return difference.pow(2).sum(dim=-1).sqrt()


def batch_hard_loss(vectors, speakers, margin=0.3):
    """Farthest utterance of the same speaker against the nearest one of another speaker."""
    distances = pairwise_distances(vectors)
    same = speakers.unsqueeze(0) == speakers.unsqueeze(1)
    positive = (distances * same).max(dim=1).values
    negative = distances.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(positive - negative + margin).mean()


class Trainer:
    def __init__(self, encoder, lr=3e-3, max_norm=5.0):
        self.encoder = encoder
        self.max_norm = max_norm
        self.optimizer = torch.optim.Adam(encoder.parameters(), lr=lr)

    def step(self, features, speakers):
        self.encoder.train()
        self.optimizer.zero_grad()
        loss = batch_hard_loss(self.encoder(features), speakers)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.encoder.parameters(), self.max_norm)
        if torch.isfinite(norm):
            self.optimizer.step()
        return loss.item()


@torch.no_grad()
def identification_rate(encoder, seed, speakers=20, enrolled=4, tests=5):
    encoder.eval()
    recordings = Recordings(speakers, seed)
    ids = torch.arange(speakers)
    gallery = encoder(recordings.utterances(ids.repeat_interleave(enrolled)))
    gallery = F.normalize(gallery.view(speakers, enrolled, -1).mean(dim=1), dim=-1)
    labels = ids.repeat_interleave(tests)
    scores = encoder(recordings.utterances(labels)) @ gallery.T
    return (scores.argmax(dim=1) == labels).float().mean().item()


def main():
    torch.manual_seed(21)
    recordings = Recordings(speakers=60, seed=3)
    encoder = SpeakerEncoder()
    trainer = Trainer(encoder)
    losses = []
    for step in range(1, 241):
        losses.append(trainer.step(*recordings.batch()))
        if step % 60 == 0:
            recent = sum(losses[-30:]) / 30
            print(f"step {step:4d}  loss {recent:.4f}  unseen speakers {identification_rate(encoder, seed=77):.3f}")
    return encoder, losses


if __name__ == "__main__":
    trained, curve = main()
