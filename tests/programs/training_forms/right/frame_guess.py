import torch
from torch import nn

torch.manual_seed(33)
FRAMES, BANDS = 20, 12


class Predictor(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.near = nn.Conv1d(BANDS, width, 3, padding=2)
        self.mix = nn.Linear(width, BANDS)

    def forward(self, spec):
        h = torch.relu(self.near(spec.transpose(1, 2))[..., :FRAMES])
        return self.mix(h.transpose(1, 2))


def utterances(n):
    pitch = torch.rand(n, 1, 1) * 2 + 1
    t = torch.linspace(0, 3, FRAMES + 1)[None, :, None]
    band = torch.linspace(0, 2, BANDS)[None, None]
    loud = 0.2 + torch.rand(n, FRAMES + 1, 1)
    return loud * torch.cos(pitch * t + 2 * band) + 0.1 * torch.randn(n, FRAMES + 1, BANDS)


class Recipe:
    def __init__(self):
        self.net = Predictor()
        self.alike = nn.CosineSimilarity(dim=-1, eps=1e-6)
        self.opt = torch.optim.RAdam(self.net.parameters(), lr=1e-2)

    def cost(self, spec):
        past, future = spec[:, :-1], spec[:, 1:]
        return 1 - self.alike(self.net(past), future).mean()

    def fit(self, data, epochs=6):
        for e in range(epochs):
            for spec in data[torch.randperm(len(data))].split(32):
                cost = self.cost(spec)
                self.opt.zero_grad()
                cost.backward()
                self.opt.step()
            print(f"epoch {e}: cost {cost.item():.4f}")


data = utterances(384)
recipe = Recipe()
recipe.fit(data[:320])
with torch.no_grad():
    guess, truth = recipe.net(data[320:, :-1]), data[320:, 1:]
    angle = (guess * truth).sum(2) / (guess.norm(dim=2) * truth.norm(dim=2))
print(f"per-frame agreement {angle.mean():.4f}")
