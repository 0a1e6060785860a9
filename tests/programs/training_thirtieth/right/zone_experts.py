"""Switch layer (Fedus et al., 2021) for travel-time regression: every row is sent to one expert."""
import torch
import torch.nn as nn
import torch.nn.functional as F

N_FEATURES = 6
N_ZONES = 4
BALANCE = 0.05
STEPS = 200
BATCH = 128


def make_trips(n, generator):
    """A trip belongs to the zone with the nearest center; each zone has its own linear law."""
    fixed = torch.Generator().manual_seed(31)
    centers = 1.5 * torch.randn(N_ZONES, N_FEATURES, generator=fixed)
    law = torch.randn(N_ZONES, N_FEATURES, generator=fixed)
    zone = torch.randint(0, N_ZONES, (n,), generator=generator)
    x = centers[zone] + 0.7 * torch.randn(n, N_FEATURES, generator=generator)
    y = (x * law[torch.cdist(x, centers).argmin(1)]).sum(-1)
    return x, y + 0.1 * torch.randn(n, generator=generator)


class Expert(nn.Sequential):
    def __init__(self, width, hidden):
        super().__init__(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))


class SwitchLayer(nn.Module):
    def __init__(self, width, hidden=16, n_experts=4, jitter=0.05):
        super().__init__()
        self.jitter = jitter
        self.router = nn.Linear(width, n_experts, bias=False)
        self.experts = nn.ModuleList(Expert(width, hidden) for _ in range(n_experts))
        nn.init.normal_(self.router.weight, std=0.02)

    def forward(self, x):
        routed = x
        if self.training:
            routed = x * torch.empty_like(x).uniform_(1 - self.jitter, 1 + self.jitter)
        probability = F.softmax(self.router(routed), dim=-1)
        gate, chosen = probability.max(dim=-1)

        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(-1)
            if len(rows):
                out[rows] = expert(x[rows])
        out = gate.unsqueeze(-1) * out

        with torch.no_grad():
            fraction = F.one_hot(chosen, len(self.experts)).float().mean(0)
        balance = len(self.experts) * (fraction * probability.mean(0)).sum()
        return out, balance, fraction


class TripModel(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(N_FEATURES, width), nn.LayerNorm(width))
        self.switch = SwitchLayer(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        hidden = self.embed(x)
        update, balance, fraction = self.switch(hidden)
        return self.out(hidden + update).squeeze(-1), balance, fraction


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    prediction, _, fraction = model(x)
    model.train()
    return F.mse_loss(prediction, y).item(), fraction


def main():
    torch.manual_seed(6)
    generator = torch.Generator().manual_seed(13)
    train, valid = make_trips(3000, generator), make_trips(800, generator)
    model = TripModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for step in range(1, STEPS + 1):
        rows = torch.randint(0, len(train[0]), (BATCH,), generator=generator)
        prediction, balance, _ = model(train[0][rows])
        loss = F.mse_loss(prediction, train[1][rows])
        optimizer.zero_grad()
        (loss + BALANCE * balance).backward()
        optimizer.step()
        if step % 50 == 0:
            error, fraction = evaluate(model, *valid)
            share = " ".join(f"{f:.2f}" for f in fraction.tolist())
            print(f"step {step:4d}  train {loss.item():.3f}  balance {balance.item():.3f}  valid {error:.3f}  share {share}")
    return model, evaluate(model, *valid)[0]


if __name__ == "__main__":
    model, valid_error = main()
