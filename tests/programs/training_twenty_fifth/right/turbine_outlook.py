"""Probabilistic wind-power forecasts: a GRU with Gaussian output, sampled roll-outs for validation, early stopping."""
import io
import math

import torch
import torch.nn as nn

HISTORY, HORIZON = 24, 8


def make_series(n, steps, gen):
    t = torch.arange(steps)
    phase = torch.rand(n, 1, generator=gen) * 2 * math.pi
    season = torch.sin(2 * math.pi * t / 12 + phase)
    gust, level = torch.zeros(n), []
    for _ in range(steps):
        gust = 0.8 * gust + 0.25 * torch.randn(n, generator=gen)
        level.append(gust)
    return season + torch.stack(level, dim=1)


class Outlook(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(hidden, 2)

    def forward(self, y, state=None):
        out, state = self.gru(y.unsqueeze(-1), state)
        mean, log_std = self.head(self.drop(out)).unbind(-1)
        return mean, log_std.clamp(-4, 2), state

    @torch.no_grad()
    def rollout(self, past, horizon, n_paths):
        """Sampled continuations, shape (n_paths, batch, horizon)."""
        past = past.repeat(n_paths, 1)
        mean, log_std, state = self(past)
        mean, log_std = mean[:, -1:], log_std[:, -1:]
        path = []
        for _ in range(horizon):
            nxt = mean + log_std.exp() * torch.randn_like(mean)
            path.append(nxt)
            mean, log_std, state = self(nxt, state)
        return torch.cat(path, dim=1).view(n_paths, -1, horizon)


def nll(model, series):
    mean, log_std, _ = model(series[:, :-1])
    return (log_std + 0.5 * ((series[:, 1:] - mean) / log_std.exp()).pow(2)).mean()


def crps(model, series, n_paths=30):
    """Sample CRPS of the roll-outs; every call draws the same noise, so that epochs are comparable."""
    model.eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        paths = model.rollout(series[:, :HISTORY], HORIZON, n_paths)
    model.train()
    truth = series[:, HISTORY:HISTORY + HORIZON]
    spread = (paths[1:] - paths[:-1]).abs().mean()
    return ((paths - truth).abs().mean() - 0.5 * spread).item()


def fit(model, train, val, epochs=18, patience=4, batch=64):
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    best, best_epoch, keep = math.inf, 0, io.BytesIO()
    history = []
    for epoch in range(1, epochs + 1):
        for idx in torch.randperm(len(train)).split(batch):
            loss = nll(model, train[idx])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        history.append(crps(model, val))
        if history[-1] < best:
            best, best_epoch, keep = history[-1], epoch, io.BytesIO()
            torch.save(model.state_dict(), keep)
        elif epoch - best_epoch >= patience:
            break
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d}  nll {loss.item():.3f}  val crps {history[-1]:.4f}  best {best:.4f} @ {best_epoch}")
    keep.seek(0)
    model.load_state_dict(torch.load(keep))
    return history, best


if __name__ == "__main__":
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(21)
    data = make_series(900, HISTORY + HORIZON, gen)
    train, val, test = data.split([600, 150, 150])
    model = Outlook()
    history, best = fit(model, train, val)
    print(f"best val crps {best:.4f}, test crps {crps(model, test):.4f}")
