import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize


class Polar(nn.Module):
    def forward(self, radius, heading):
        return radius * F.normalize(heading, dim=1)

    def right_inverse(self, matrix):
        return matrix.norm(dim=1, keepdim=True), F.normalize(matrix, dim=1)


class Coils(nn.Module):
    def __init__(self, currents, probes, width=28):
        super().__init__()
        self.maps = nn.ModuleDict({
            "wind": nn.Linear(currents, width),
            "core": nn.Linear(width, width),
            "read": nn.Linear(width, probes),
        })

    def forward(self, amps):
        h = torch.tanh(self.maps["wind"](amps))
        return self.maps["read"](torch.tanh(self.maps["core"](h)))


def each_map(model, action):
    for m in model.maps.values():
        action(m)


def bench(n):
    amps = torch.randn(n, 6)
    mix = torch.randn(6, 4) / 6 ** 0.5
    return amps, torch.sin(amps @ mix) + 0.2 * (amps @ mix).square()


class Calibration:
    def __init__(self, model, data):
        self.model, self.data = model, data
        self.arm()

    def arm(self):
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=4e-3)

    def cycle(self, rounds, name):
        amps, probe = self.data
        for r in range(rounds):
            rows = torch.randint(len(amps), (64,))
            loss = F.mse_loss(self.model(amps[rows]), probe[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if (r + 1) % 100 == 0:
                with torch.no_grad():
                    print(f"{name} {r + 1}: error {F.mse_loss(self.model(amps), probe).item():.5f}")

    def flatten(self):
        each_map(self.model, lambda m: parametrize.remove_parametrizations(m, "weight"))
        self.arm()


def main():
    torch.manual_seed(47)
    model = Coils(6, 4)
    each_map(model, lambda m: parametrize.register_parametrization(m, "weight", Polar()))
    job = Calibration(model, bench(800))
    job.cycle(200, "coarse")
    job.flatten()
    job.cycle(300, "fine")


if __name__ == "__main__":
    main()
