"""Magnitude pruning of a small network; hooks keep the gradients of pruned weights at zero while it is retrained."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def data(n):
    x = torch.randn(n, 10)
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.05 * torch.randn(n)
    return x, y[:, None]


def fit(model, x, y, epochs, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(50):
            loss = F.mse_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def prune(model, fraction):
    """Sets the smallest weights to zero; the hooks hold them there. Called once per model."""
    masks, handles = {}, []
    for name, p in model.named_parameters():
        if p.dim() < 2:
            continue
        threshold = p.abs().flatten().kthvalue(max(1, int(fraction * p.numel()))).values
        mask = (p.abs() > threshold).float()
        p.mul_(mask)
        masks[name] = mask
        handles.append(p.register_hook(lambda grad, mask=mask: grad * mask))
    return masks, handles


@torch.no_grad()
def test_error(model, x, y):
    return F.mse_loss(model(x), y).item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = data(1500)
    test_x, test_y = data(1000)
    model = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))
    fit(model, x, y, 15, 0.03)
    dense = test_error(model, test_x, test_y)
    masks, handles = prune(model, 0.7)
    pruned = test_error(model, test_x, test_y)
    fit(model, x, y, 12, 0.03)  # a new optimizer, so no momentum of the dense phase moves pruned weights
    retrained = test_error(model, test_x, test_y)
    for name, p in model.named_parameters():
        if name in masks:
            assert torch.count_nonzero(p[masks[name] == 0]) == 0
    for handle in handles:
        handle.remove()
    kept = sum(int(m.sum()) for m in masks.values()) / sum(m.numel() for m in masks.values())
    print(f"kept {kept:.2f} of the weights; error dense {dense:.3f}, pruned {pruned:.3f}, retrained {retrained:.3f}")


if __name__ == "__main__":
    main()
