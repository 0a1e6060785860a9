"""Learning to reweight noisy examples: a virtual, differentiable step on the weighted training loss is scored on a
small clean set; the example weights that follow from it are constants in the real step."""
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

torch.set_num_threads(1)


def make_data(n, flipped):
    x = torch.randn(n, 20)
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
    bad = (torch.rand(n) < flipped) & (y == 1)
    return x, torch.where(bad, 1 - y, y), bad


def example_weights(model, x, y, clean_x, clean_y, lr):
    """How much would more weight on each example have lowered the clean loss?"""
    params = dict(model.named_parameters())
    eps = torch.zeros(len(x), requires_grad=True)
    losses = F.cross_entropy(functional_call(model, params, (x,)), y, reduction="none")
    grads = torch.autograd.grad((eps * losses).sum(), list(params.values()), create_graph=True)
    virtual = {name: p - lr * g for (name, p), g in zip(params.items(), grads)}
    clean_loss = F.cross_entropy(functional_call(model, virtual, (clean_x,)), clean_y)
    (slope,) = torch.autograd.grad(clean_loss, eps)
    weight = (-slope).clamp(min=0)
    return weight / weight.sum().clamp(min=1e-8)


def train(reweight, data, clean, epochs=12, batch=100, lr=0.1):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    x, y, bad = data
    on_bad = []
    for _ in range(epochs):
        for index in torch.randperm(len(x)).split(batch):
            if reweight:
                pick = torch.randperm(len(clean[0]))[:50]
                weight = example_weights(model, x[index], y[index], clean[0][pick], clean[1][pick], lr)
                on_bad.append(weight[bad[index]].sum().item())
            else:
                weight = torch.full((len(index),), 1.0 / len(index))
            loss = (weight * F.cross_entropy(model(x[index]), y[index], reduction="none")).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model, on_bad


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(0)
    noisy = make_data(2000, 0.7)
    clean = make_data(150, 0.0)[:2]
    test = make_data(2000, 0.0)[:2]
    plain, _ = train(False, noisy, clean)
    careful, share = train(True, noisy, clean)
    print(f"share of flipped labels {noisy[2].float().mean().item():.2f}, "
          f"weight that they get {sum(share) / len(share):.2f}")
    print(f"test accuracy: uniform weights {accuracy(plain, *test):.3f}, learned weights {accuracy(careful, *test):.3f}")


if __name__ == "__main__":
    main()
