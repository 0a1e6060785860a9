import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(30)
STRIDES = (2, 2, 2)


class Listener(nn.Module):
    def __init__(self, symbols=8, width=24):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv1d(width if k else 6, width, 5, stride=s, padding=2) for k, s in enumerate(STRIDES)
        )
        self.classify = nn.Conv1d(width, symbols + 1, 1)

    def forward(self, wave, lengths):
        for conv, stride in zip(self.convs, STRIDES):
            wave = F.leaky_relu(conv(wave), 0.1)
            lengths = torch.div(lengths - 1, stride, rounding_mode="floor") + 1
        return self.classify(wave).permute(2, 0, 1).log_softmax(-1), lengths


SOUNDS = torch.randn(8, 6)


def speak(n):
    sizes = torch.randint(5, 10, (n,))
    words = torch.randint(1, 9, (n, 9))
    wave = 0.3 * torch.randn(n, 6, 56)
    for row in range(n):
        step = 56 // int(sizes[row])
        for place in range(int(sizes[row])):
            wave[row, :, place * step:place * step + step - 1] += SOUNDS[words[row, place] - 1].unsqueeze(1)
    return wave, words, sizes


def objective(model, wave, words, sizes):
    logp, frames = model(wave, torch.full((len(wave),), wave.shape[-1]))
    return F.ctc_loss(logp, words, frames, sizes, blank=0, zero_infinity=True)


model = Listener()
opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
history = []
for it in range(60):
    loss = objective(model, *speak(16))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    history.append(loss.item())
    if it % 20 == 19:
        print(f"step {it + 1} loss {sum(history[-20:]) / 20:.4f}")
