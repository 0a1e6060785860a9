"""Discrete units from unlabelled speech-like frames: a vector-quantised autoencoder with a moving-average codebook."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
PHONES, BINS, FRAMES, CODES, WIDTH = 8, 16, 32, 24, 12


def utterances(count, phones):
    segments = torch.randint(0, PHONES, (count, FRAMES // 4))
    labels = segments.repeat_interleave(4, dim=1)
    return phones[labels].transpose(1, 2) + 0.4 * torch.randn(count, BINS, FRAMES), labels


class Codebook(nn.Module):
    def __init__(self, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(CODES, WIDTH))
        self.register_buffer("counts", torch.ones(CODES))
        self.register_buffer("sums", self.codes.clone())

    @torch.no_grad()
    def adapt(self, flat, index):
        hot = F.one_hot(index, CODES).float()
        self.counts.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(hot.t() @ flat, alpha=1 - self.decay)
        dead = self.counts < 0.5
        if dead.any():
            self.sums[dead] = flat[torch.randint(0, len(flat), (int(dead.sum()),))]
            self.counts[dead] = 1.0
        self.codes.copy_(self.sums / self.counts[:, None])

    def forward(self, z):
        flat = z.transpose(1, 2).reshape(-1, WIDTH)
        index = torch.cdist(flat.detach(), self.codes).argmin(dim=1)
        quantised = self.codes[index].view(len(z), -1, WIDTH).transpose(1, 2)
        commitment = F.mse_loss(z, quantised)
        if self.training:
            self.adapt(flat.detach(), index)
        return z + (quantised - z).detach(), commitment, index.view(len(z), -1)


class Autoencoder(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv1d(BINS, hidden, 3, padding=1), nn.ReLU(), nn.Conv1d(hidden, WIDTH, 1))
        self.codebook = Codebook()
        self.decode = nn.Sequential(nn.Conv1d(WIDTH, hidden, 1), nn.ReLU(), nn.Conv1d(hidden, BINS, 3, padding=1))
        self.probe = nn.Linear(WIDTH, PHONES)

    def forward(self, frames):
        quantised, commitment, index = self.codebook(self.encode(frames))
        logits = self.probe(quantised.detach().transpose(1, 2))
        return self.decode(quantised), commitment, index, logits


@torch.no_grad()
def evaluate(model, frames, labels):
    model.eval()
    rebuilt, _, index, logits = model(frames)
    error = F.mse_loss(rebuilt, frames).item()
    return error, len(index.unique()), (logits.argmax(-1) == labels).float().mean().item()


phones = torch.randn(PHONES, BINS)
train_x, train_y = utterances(384, phones)
test_x, test_y = utterances(128, phones)
model = Autoencoder()
optimizer = torch.optim.Adam([*model.encode.parameters(), *model.decode.parameters()], lr=2e-3)
probe_optimizer = torch.optim.Adam(model.probe.parameters(), lr=1e-2)
for epoch in range(20):
    model.train()
    for batch in torch.randperm(len(train_x)).split(32):
        rebuilt, commitment, _, logits = model(train_x[batch])
        loss = F.mse_loss(rebuilt, train_x[batch]) + 0.25 * commitment
        probe_loss = F.cross_entropy(logits.flatten(0, 1), train_y[batch].flatten())
        optimizer.zero_grad()
        probe_optimizer.zero_grad()
        (loss + probe_loss).backward()
        optimizer.step()
        probe_optimizer.step()
error, used, phone_accuracy = evaluate(model, test_x, test_y)
variance = test_x.var().item()
print(f"reconstruction {error:.3f} of variance {variance:.3f}, {used} codes in use, probe accuracy {phone_accuracy:.3f}")
