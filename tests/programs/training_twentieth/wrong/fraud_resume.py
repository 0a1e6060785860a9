"""Card fraud detection with a job that may be preempted: it saves after every chunk of steps and picks up from there."""
import io

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)

CHANNELS, MERCHANTS, NUMERIC = 5, 60, 12
TOTAL_STEPS, WARMUP, CHUNK, BATCH = 480, 40, 80, 64
PEAK_LR = 2e-2


def make_transactions(n, generator):
    world = torch.Generator().manual_seed(99)
    weights = torch.randn(NUMERIC, NUMERIC, generator=world) / 3
    merchant_risk = 0.8 * torch.randn(MERCHANTS, generator=world)
    channel_risk = 0.5 * torch.randn(CHANNELS, generator=world)
    numeric = torch.randn(n, NUMERIC, generator=generator)
    merchant = torch.randint(0, MERCHANTS, (n,), generator=generator)
    channel = torch.randint(0, CHANNELS, (n,), generator=generator)
    logit = (numeric * (numeric @ weights)).sum(1) + merchant_risk[merchant] + channel_risk[channel] - 2.5
    label = torch.bernoulli(torch.sigmoid(1.2 * logit), generator=generator)
    return numeric, merchant, channel, label


class FraudNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.merchant = nn.Embedding(MERCHANTS, 8)
        self.channel = nn.Embedding(CHANNELS, 4)
        self.mlp = nn.Sequential(
            nn.Linear(NUMERIC + 12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, numeric, merchant, channel):
        h = torch.cat([numeric, self.merchant(merchant), self.channel(channel)], dim=1)
        return self.mlp(h).squeeze(1)


def schedule(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return max(0.0, 1.0 - (step - WARMUP) / (TOTAL_STEPS - WARMUP))


def build():
    model = FraudNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=PEAK_LR)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    return model, optimizer, scheduler


def save(step, model, optimizer):
    buffer = io.BytesIO()
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "rng": torch.get_rng_state()}, buffer)
    return buffer.getvalue()


def load(blob, model, optimizer):
    saved = torch.load(io.BytesIO(blob))
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    torch.set_rng_state(saved["rng"])
    return saved["step"]


def train_chunk(data, blob, lr_log):
    model, optimizer, scheduler = build()
    start = load(blob, model, optimizer) if blob is not None else 0
    numeric, merchant, channel, label = data
    model.train()
    for step in range(start, min(start + CHUNK, TOTAL_STEPS)):
        idx = torch.randint(0, len(label), (BATCH,))
        logits = model(numeric[idx], merchant[idx], channel[idx])
        loss = F.binary_cross_entropy_with_logits(logits, label[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr_log.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    return model, save(step + 1, model, optimizer), step + 1


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    numeric, merchant, channel, label = data
    logits = model(numeric, merchant, channel)
    order = logits.argsort(descending=True)
    hits = label[order].cumsum(0) / torch.arange(1, len(label) + 1)
    average_precision = (hits * label[order]).sum() / label.sum()
    return F.binary_cross_entropy_with_logits(logits, label).item(), average_precision.item()


def main():
    g = torch.Generator().manual_seed(2)
    train_data, test_data = make_transactions(6000, g), make_transactions(3000, g)
    blob, step, lr_log = None, 0, []
    while step < TOTAL_STEPS:
        model, blob, step = train_chunk(train_data, blob, lr_log)
        loss, ap = evaluate(model, test_data)
        print(f"saved at step {step}: test loss {loss:.4f}  average precision {ap:.4f}")
    return lr_log, loss, ap


if __name__ == "__main__":
    main()
