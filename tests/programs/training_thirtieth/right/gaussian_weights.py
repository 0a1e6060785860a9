"""SWAG: a Gaussian over the weights of a classifier, from the first two moments of its late training path."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.optim.swa_utils import update_bn


def spirals(n, generator, arms=3):
    y = torch.randint(0, arms, (n,), generator=generator)
    t = torch.rand(n, generator=generator)
    angle = 4 * t + 2 * torch.pi * y / arms + 0.15 * torch.randn(n, generator=generator)
    return torch.stack([t * angle.cos(), t * angle.sin()], dim=1) * 3, y


def make_net(width=40, arms=3):
    return nn.Sequential(
        nn.Linear(2, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, arms),
    )


class WeightPosterior(nn.Module):
    def __init__(self, model, rank=8):
        super().__init__()
        size = parameters_to_vector(model.parameters()).numel()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("square", torch.zeros(size))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.rank, self.columns = rank, []

    @torch.no_grad()
    def collect(self, model):
        w = parameters_to_vector(model.parameters())
        n = self.count.item()
        self.mean.mul_(n / (n + 1)).add_(w, alpha=1 / (n + 1))
        self.square.mul_(n / (n + 1)).add_(w.square(), alpha=1 / (n + 1))
        self.count += 1
        self.columns = (self.columns + [w - self.mean])[-self.rank:]

    @torch.no_grad()
    def draw(self, scale=0.5):
        spread = (self.square - self.mean.square()).clamp_min(1e-12).sqrt()
        low = torch.stack(self.columns, dim=1)
        noise = spread * torch.randn_like(spread) / 2 ** 0.5
        noise += low @ torch.randn(low.shape[1]) / (2 * (low.shape[1] - 1)) ** 0.5
        return self.mean + scale ** 0.5 * noise


@torch.no_grad()
def predict(model, posterior, batches, x, draws=8):
    backup = {name: t.clone() for name, t in model.state_dict().items()}
    total = 0
    for _ in range(draws):
        vector_to_parameters(posterior.draw(), model.parameters())
        update_bn(batches, model)
        model.eval()
        total = total + model(x).softmax(1)
    model.load_state_dict(backup)
    return total / draws


def train_epoch(model, optimizer, x, y, size=100):
    model.train()
    for index in torch.randperm(len(x)).split(size):
        loss = F.cross_entropy(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def summarize(name, probabilities, y):
    accuracy = (probabilities.argmax(1) == y).float().mean().item()
    nll = F.nll_loss(probabilities.clamp_min(1e-8).log(), y).item()
    print(f"{name:10s} accuracy {accuracy:.3f}  nll {nll:.3f}")
    return accuracy, nll


def main():
    torch.manual_seed(31)
    generator = torch.Generator().manual_seed(13)
    (x, y), (x_test, y_test) = spirals(600, generator), spirals(500, generator)
    model = make_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    posterior = WeightPosterior(model)
    for epoch in range(1, 61):
        loss = train_epoch(model, optimizer, x, y)
        if epoch == 40:
            for group in optimizer.param_groups:
                group["lr"] = 0.05
        if epoch > 40:
            posterior.collect(model)
        if epoch % 20 == 0:
            print(f"epoch {epoch:3d}  loss {loss:.3f}")
    model.eval()
    with torch.no_grad():
        single = model(x_test).softmax(1)
    averaged = predict(model, posterior, x.split(100), x_test)
    return model, posterior, summarize("last", single, y_test), summarize("averaged", averaged, y_test)


if __name__ == "__main__":
    main()
