"""Quantization-aware training of a part-of-speech-like tagger with 8-bit weights and 5-bit activations.

Activation ranges are tracked during training and fixed at inference.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)

WORDS, TAGS, LENGTH, DIM = 40, 6, 10, 32

word_class = torch.randint(TAGS, (WORDS,))


def sentences(n):
    words = torch.randint(WORDS, (n, LENGTH))
    own = word_class[words]
    before = F.pad(own[:, :-1], (1, 0))
    # every third word class takes its tag from the word before it
    tags = torch.where(own % 3 == 0, (own + before) % TAGS, own)
    return words, tags


def fake_quant(x, scale, low, high):
    """Rounds to the grid in the forward pass, passes the gradient of the clamped value."""
    clamped = (x / scale).clamp(low, high)
    return (clamped + (clamped.round() - clamped).detach()) * scale


class QuantActivation(nn.Module):
    """5-bit signed activations; the range is a slowly decaying maximum over the batches."""

    def __init__(self, bits=5, momentum=0.9):
        super().__init__()
        self.top = 2 ** (bits - 1) - 1
        self.momentum = momentum
        self.register_buffer("peak", torch.tensor(1.0))

    def forward(self, x):
        peak = self.peak
        if self.training:
            batch_peak = x.detach().abs().amax()
            peak = self.momentum * peak + (1 - self.momentum) * batch_peak
            peak = torch.maximum(peak, batch_peak)
        return fake_quant(x, peak / self.top, -self.top, self.top)


class QuantLinear(nn.Linear):
    def forward(self, x):
        scale = self.weight.detach().abs().amax(dim=1, keepdim=True) / 127
        return F.linear(x, fake_quant(self.weight, scale, -127, 127), self.bias)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, DIM)
        self.quant_in = QuantActivation()
        self.first = QuantLinear(2 * DIM, 64)
        self.quant_mid = QuantActivation()
        self.second = QuantLinear(64, 64)
        self.quant_out = QuantActivation()
        self.head = nn.Linear(64, TAGS)

    def forward(self, words):
        x = self.embed(words)
        previous = F.pad(x[:, :-1], (0, 0, 1, 0))
        x = self.quant_in(torch.cat([x, previous], dim=-1))
        x = self.quant_mid(F.relu(self.first(x)))
        x = self.quant_out(F.relu(self.second(x)))
        return self.head(x)


model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)

for step in range(400):
    words, tags = sentences(48)
    logits = model(words)
    loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 100 == 0:
        hits = (logits.argmax(-1) == tags).float().mean()
        print(f"step {step + 1}  loss {loss.item():.3f}  batch accuracy {hits.item():.3f}")

model.eval()
with torch.no_grad():
    words, tags = sentences(500)
    logits = model(words)
    held_loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten()).item()
    accuracy = (logits.argmax(-1) == tags).float().mean().item()
print(f"quantized tagger on new sentences: loss {held_loss:.3f}, accuracy {accuracy:.3f}")
