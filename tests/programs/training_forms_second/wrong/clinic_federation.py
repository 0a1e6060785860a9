import copy

import torch
from torch import nn
from torch.nn import functional as F


class Clinic:
    def __init__(self, shift, n=120):
        self.x = torch.randn(n, 8) + 0.5 * shift
        w = torch.linspace(-1, 1, 8) + 0.4 * shift * torch.randn(8)
        self.y = (self.x @ w + 0.2 * torch.randn(n)).unsqueeze(1)

    def fit_locally(self, model, steps=5, lr=0.05):
        local = copy.deepcopy(model)
        opt = torch.optim.SGD(local.parameters(), lr=lr)
        for _ in range(steps):
            pick = torch.randint(0, len(self.x), (32,))
            loss = F.huber_loss(local(self.x[pick]), self.y[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
        return local

    @torch.no_grad()
    def score(self, model):
        return F.mse_loss(model(self.x), self.y).item()


class Server:
    def __init__(self, model, clinics, lr):
        self.model = model
        self.clinics = clinics
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def collect(self, local, share):
        for mine, theirs in zip(self.model.parameters(), local.parameters()):
            mine.grad = share * (mine.detach() - theirs.detach())

    def round(self):
        self.opt.zero_grad()
        for clinic in self.clinics:
            local = clinic.fit_locally(self.model)
            self.collect(local, 1.0 / len(self.clinics))
        self.opt.step()


if __name__ == "__main__":
    torch.manual_seed(6)
    clinics = [Clinic(s) for s in (-1.0, 0.0, 0.5, 2.0)]
    server = Server(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)), clinics, lr=0.02)
    for r in range(60):
        server.round()
        if r % 15 == 14:
            print(f"round {r + 1}", [round(c.score(server.model), 3) for c in clinics])
