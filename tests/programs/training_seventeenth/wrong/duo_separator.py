"""Single-channel separation of two talkers with a learned encoder/mask/decoder and permutation-invariant SI-SNR."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SR = 2000
LENGTH = 800
KERNEL = 32
EPS = 1e-8


def talker(n):
    """Harmonic 'voices' with slow vibrato and syllable-like amplitude."""
    t = torch.arange(LENGTH) / SR
    f0 = torch.empty(n, 1).uniform_(70, 260)
    vibrato = 3.0 * torch.sin(2 * math.pi * torch.empty(n, 1).uniform_(3, 6) * t)
    phase = 2 * math.pi * torch.cumsum((f0 + vibrato).expand(n, LENGTH) / SR, dim=1)
    wave = torch.zeros(n, LENGTH)
    for h in range(1, 4):
        wave += torch.rand(n, 1) / h * torch.sin(h * phase + 6.28 * torch.rand(n, 1))
    syll = 0.55 + 0.45 * torch.sin(2 * math.pi * torch.empty(n, 1).uniform_(2, 5) * t + 6.28 * torch.rand(n, 1))
    wave = wave * syll
    return wave / wave.std(dim=1, keepdim=True)


def make_batch(n):
    refs = torch.stack([talker(n), talker(n)], dim=1)
    return refs.sum(1), refs


class Separator(nn.Module):
    def __init__(self, filters=48, hidden=48):
        super().__init__()
        self.encoder = nn.Conv1d(1, filters, KERNEL, stride=KERNEL // 2, bias=False)
        self.rnn = nn.GRU(filters, hidden, batch_first=True, bidirectional=True)
        self.mask = nn.Linear(2 * hidden, 2 * filters)
        self.decoder = nn.ConvTranspose1d(filters, 1, KERNEL, stride=KERNEL // 2, bias=False)

    def forward(self, mix):
        code = self.encoder(mix[:, None])
        h, _ = self.rnn(F.layer_norm(code.transpose(1, 2), (code.shape[1],)))
        masks = torch.sigmoid(self.mask(h)).transpose(1, 2).unflatten(1, (2, -1))
        parts = masks * code[:, None]
        wave = self.decoder(parts.flatten(0, 1))
        return wave.view(mix.shape[0], 2, -1)


def si_snr(est, ref):
    est = est - est.mean(-1, keepdim=True)
    ref = ref - ref.mean(-1, keepdim=True)
    scale = (est * ref).sum(-1, keepdim=True) / (ref.pow(2).sum(-1, keepdim=True) + EPS)
    target = scale * ref
    noise = est - target
    return 10 * torch.log10((target.pow(2).sum(-1) + EPS) / (noise.pow(2).sum(-1) + EPS))


def pit_loss(est, refs):
    straight = -si_snr(est, refs).mean()
    crossed = -si_snr(est.flip(1), refs).mean()
    return torch.minimum(straight, crossed)


@torch.no_grad()
def improvement(model, mix, refs):
    """SI-SNR improvement over the mixture; every mixture is scored with the better assignment."""
    est = model(mix)
    straight = si_snr(est, refs).mean(1)
    crossed = si_snr(est.flip(1), refs).mean(1)
    base = si_snr(mix[:, None].expand_as(refs), refs).mean(1)
    return (torch.maximum(straight, crossed) - base).mean().item()


def main(steps=100, batch=16):
    torch.manual_seed(2)
    model = Separator()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    test_mix, test_refs = make_batch(128)
    for step in range(steps):
        mix, refs = make_batch(batch)
        loss = pit_loss(model(mix), refs)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.2f} dB")
    gain = improvement(model, test_mix, test_refs)
    print(f"test SI-SNR improvement {gain:.2f} dB")
    return gain


if __name__ == "__main__":
    gain = main()
