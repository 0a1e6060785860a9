import torch
import torch.nn as nn


class RBFFeatures(nn.Module):
    def __init__(self, centers):
        super().__init__()
        self.centers = nn.Parameter(centers.clone())
        self.log_width = nn.Parameter(torch.zeros(centers.shape[0]))

    def forward(self, x):
        d2 = torch.cdist(x, self.centers).pow(2)
        return torch.exp(-d2 * torch.exp(-self.log_width))


class RBFNetwork(nn.Module):
    def __init__(self, centers):
        super().__init__()
        self.features = RBFFeatures(centers)
        self.readout = nn.Linear(centers.shape[0], 1)

    def forward(self, x):
        return self.readout(self.features(x)).squeeze(1)


class LBFGSFitter:
    def __init__(self, model, weight_decay=1e-4):
        self.model = model
        self.weight_decay = weight_decay
        self.opt = torch.optim.LBFGS(
            model.parameters(), lr=1.0, max_iter=8, history_size=6, line_search_fn="strong_wolfe"
        )
        self.evals = 0

    def penalty(self):
        return self.weight_decay * sum(p.pow(2).sum() for p in self.model.readout.parameters())

    def run_epoch(self, x, y):
        phi = self.model.features(x)

        def closure():
            self.opt.zero_grad()
            pred = self.model.readout(phi).squeeze(1)
            loss = (pred - y).pow(2).mean() + self.penalty()
            loss.backward()
            self.evals += 1
            return loss

        return self.opt.step(closure).item()

    @torch.no_grad()
    def validate(self, x, y):
        return (self.model(x) - y).pow(2).mean().item()


def target(x):
    return torch.sin(2 * x[:, 0]) * torch.cos(x[:, 1]) + 0.2 * x[:, 1]


def main():
    torch.manual_seed(5)
    x = 4 * torch.rand(200, 2) - 2
    y = target(x) + 0.02 * torch.randn(200)
    xv = 4 * torch.rand(100, 2) - 2
    centers = 4 * torch.rand(12, 2) - 2
    fitter = LBFGSFitter(RBFNetwork(centers))
    for epoch in range(6):
        fitter.run_epoch(x, y)
        print(f"epoch {epoch} loss {fitter.validate(xv, target(xv)):.5f} evals {fitter.evals}")


if __name__ == "__main__":
    main()
