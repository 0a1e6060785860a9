"""Leaf species from shape measurements, trained with sharpness-aware minimisation (Foret et al., 2021)."""
import torch
from torch import nn
from torch.nn import functional as F

FEATURES = 16
SPECIES = 5


class Leaves:
    """Measurements around one mean shape per species, with some labels of a neighbouring species."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        layout = torch.Generator().manual_seed(31)
        self.shapes = 0.8 * torch.randn(SPECIES, 2, FEATURES, generator=layout)

    def batch(self, count, mislabelled=0.0):
        species = torch.randint(SPECIES, (count,), generator=self.generator)
        form = torch.randint(2, (count,), generator=self.generator)
        noise = 0.7 * torch.randn(count, FEATURES, generator=self.generator)
        flip = torch.rand(count, generator=self.generator) < mislabelled
        return self.shapes[species, form] + noise, torch.where(flip, (species + 1) % SPECIES, species)


class LeafNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.first = nn.Linear(FEATURES, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.second = nn.Linear(width, width)
        self.out = nn.Linear(width, SPECIES)

    def forward(self, x):
        return self.out(F.relu(self.second(F.relu(self.norm(self.first(x))))))


class SharpnessAware(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self):
        """Climbs to the highest point of the neighbourhood, to first order."""
        norm = torch.stack([p.grad.norm() for group in self.param_groups for p in group["params"]]).norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        """Goes back and descends with the gradient of the climbed point."""
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        self.zero_grad()


def hold_running_statistics(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.kept_momentum = module.momentum
            module.momentum = 0.0


def release_running_statistics(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d) and hasattr(module, "kept_momentum"):
            module.momentum = module.kept_momentum


@torch.no_grad()
def accuracy(model, leaves, count=500):
    model.eval()
    x, y = leaves.batch(count)
    share = (model(x).argmax(dim=1) == y).float().mean().item()
    model.train()
    return share


def main():
    torch.manual_seed(19)
    model = LeafNet()
    optimizer = SharpnessAware(
        model.parameters(), torch.optim.SGD, rho=0.1, lr=0.1, momentum=0.9, weight_decay=1e-4
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.base_optimizer, T_max=200)
    leaves, held_out = Leaves(seed=1), Leaves(seed=2)
    losses = []
    for step in range(1, 201):
        x, y = leaves.batch(64, mislabelled=0.15)

        release_running_statistics(model)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.first_step()

        hold_running_statistics(model)
        F.cross_entropy(model(x), y).backward()
        optimizer.second_step()

        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0:
            print(f"step {step:4d}  loss {sum(losses[-50:]) / 50:.4f}  held out {accuracy(model, held_out):.3f}")
    return model, optimizer, losses


if __name__ == "__main__":
    model, optimizer, losses = main()
