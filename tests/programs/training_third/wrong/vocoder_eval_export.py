import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.parametrize import is_parametrized, remove_parametrizations


class ResBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.mix(F.leaky_relu(self.conv(F.leaky_relu(x, 0.1)), 0.1))


class Vocoder(nn.Module):
    def __init__(self, n_mels=8, channels=16):
        super().__init__()
        self.pre = nn.Conv1d(n_mels, channels, 3, padding=1)
        self.blocks = nn.ModuleList(ResBlock(channels, d) for d in (1, 2, 4))
        self.post = nn.Conv1d(channels, 4, 3, padding=1)
        self.set_weight_norm(True)

    def convs(self):
        return [m for m in self.modules() if isinstance(m, nn.Conv1d)]

    def set_weight_norm(self, enabled):
        for conv in self.convs():
            if enabled and not is_parametrized(conv):
                weight_norm(conv)
            elif not enabled and is_parametrized(conv):
                remove_parametrizations(conv, "weight")

    def forward(self, mel):
        h = self.pre(mel)
        for block in self.blocks:
            h = block(h)
        return torch.tanh(self.post(h)).transpose(1, 2).flatten(1)


def spectral_loss(pred, target):
    total = F.l1_loss(pred, target)
    for n_fft in (16, 32):
        window = torch.hann_window(n_fft)
        a, b = (torch.stft(s, n_fft, window=window, return_complex=True).abs() for s in (pred, target))
        total = total + F.l1_loss(a, b)
    return total


@torch.no_grad()
def benchmark(model, mel, wave):
    model.eval()
    model.set_weight_norm(False)
    score = spectral_loss(model(mel), wave).item()
    model.set_weight_norm(True)
    model.train()
    return score


def make_audio(n=24, frames=32, n_mels=8):
    freq = 0.05 + 0.3 * torch.rand(n, 1)
    wave = 0.6 * torch.sin(freq * torch.arange(frames * 4))
    mix = torch.randn(n_mels, 4)
    mel = torch.einsum("mk,nfk->nmf", mix, wave.view(n, frames, 4))
    return mel + 0.05 * torch.randn_like(mel), wave


def main(steps=60, eval_every=20):
    torch.manual_seed(0)
    mel, wave = make_audio()
    model = Vocoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.8, 0.99))
    scores = []
    for step in range(1, steps + 1):
        idx = torch.randperm(16)[:8]
        loss = spectral_loss(model(mel[idx]), wave[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % eval_every == 0:
            scores.append(benchmark(model, mel[16:], wave[16:]))
            print(f"step {step} train {loss.item():.4f} heldout {scores[-1]:.4f}")
    return model, optimizer, scores


if __name__ == "__main__":
    model, optimizer, scores = main()
