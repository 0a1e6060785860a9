"""Siren detector: mixed precision, accumulation over 4 micro-batches, clipping of the unscaled gradient."""
import math
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(8)

ACCUM = 4
MAX_NORM = 0.5


def clips(n, length=200):
    t = torch.linspace(0, 1, length)
    label = (torch.arange(n) % 2).float()[torch.randperm(n)]
    wobble = 20 * t + 3 * torch.sin(2 * math.pi * 3 * t)
    siren = torch.sin(2 * math.pi * (wobble + torch.rand(n, 1)))
    hum = torch.sin(2 * math.pi * (20 * t + torch.rand(n, 1)))
    wave = torch.where(label[:, None] > 0, siren, hum)
    return (wave + 0.4 * torch.randn(n, length)).unsqueeze(1), label


detector = nn.Sequential(
    nn.Conv1d(1, 16, 25, stride=4), nn.GELU(),
    nn.Conv1d(16, 16, 7, stride=2), nn.GELU(),
    nn.AdaptiveMaxPool1d(4), nn.Flatten(), nn.Linear(64, 1),
)
optimizer = torch.optim.SGD(detector.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=20)
loss_fn = nn.BCEWithLogitsLoss()

wave, label = clips(512)
test_wave, test_label = clips(200)
assert len(wave) % (16 * ACCUM) == 0

for epoch in range(4):
    epoch_loss, clipped, updates = 0.0, 0, 0
    optimizer.zero_grad()
    for i, idx in enumerate(torch.randperm(len(wave)).split(16)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            score = detector(wave[idx]).squeeze(1)
        loss = loss_fn(score.float(), label[idx])
        scaler.scale(loss / ACCUM).backward()
        epoch_loss += loss.item()
        if (i + 1) % ACCUM == 0:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(detector.parameters(), MAX_NORM)
            clipped += int(norm > MAX_NORM)
            updates += 1
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    with torch.no_grad():
        accuracy = ((detector(test_wave).squeeze(1) > 0) == (test_label > 0)).float().mean().item()
    print(f"epoch {epoch}  loss {epoch_loss / (i + 1):.4f}  clipped {clipped}/{updates}  "
          f"scale {scaler.get_scale():.0f}  test acc {accuracy:.3f}")
