"""Adapt a pretrained classifier of stamp images to a new scanner with low-rank adapters."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

SIDE, CLASSES, RANK, ALPHA = 12, 8, 4, 8


class LoRALinear(nn.Module):
    """Linear layer with a frozen weight and a low-rank update.

    While training, the update is computed beside the weight; for inference it is folded into the weight, so that
    serving costs no more than the original layer.
    """

    def __init__(self, linear):
        super().__init__()
        self.weight = nn.Parameter(linear.weight.detach().clone(), requires_grad=False)
        self.bias = nn.Parameter(linear.bias.detach().clone(), requires_grad=False)
        self.down = nn.Parameter(torch.empty(RANK, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, RANK))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = ALPHA / RANK

    def train(self, mode=True):
        super().train(mode)
        update = self.scale * (self.up.data @ self.down.data)
        if mode:
            self.weight.data -= update
        else:
            self.weight.data += update
        return self

    def forward(self, x):
        y = F.linear(x, self.weight, self.bias)
        if self.training:
            y = y + self.scale * F.linear(F.linear(x, self.down), self.up)
        return y


def make_network():
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(),
                         nn.Linear(96, CLASSES))


def add_adapters(network):
    for name, layer in list(network.named_children()):
        if isinstance(layer, nn.Linear):
            setattr(network, name, LoRALinear(layer))
    return network


def draw(n, motifs, generator, scanner=None):
    label = torch.randint(0, CLASSES, (n,), generator=generator)
    image = motifs[label] + 1.6 * torch.randn(n, SIDE, SIDE, generator=generator)
    if scanner is not None:
        image = torch.einsum("ij,njk->nik", scanner, image)
    return image, label


def epoch_of(model, optimizer, image, label):
    model.train()
    for idx in torch.randperm(len(label)).split(64):
        loss = F.cross_entropy(model(image[idx]), label[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(model, image, label):
    model.eval()
    logits = model(image)
    return F.cross_entropy(logits, label).item(), (logits.argmax(1) == label).float().mean().item()


def main():
    g = torch.Generator().manual_seed(4)
    motifs = torch.randn(CLASSES, SIDE, SIDE, generator=g) * 0.6
    scanner = 0.6 * torch.eye(SIDE) + 0.8 * torch.linalg.qr(torch.randn(SIDE, SIDE, generator=g))[0]
    old = draw(1500, motifs, g)
    train, val, test = draw(1000, motifs, g, scanner), draw(500, motifs, g, scanner), draw(500, motifs, g, scanner)

    network = make_network()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(6):
        epoch_of(network, optimizer, *old)
    print("pretrained, on the new scanner: loss %.4f  accuracy %.3f" % evaluate(network, *val))

    model = add_adapters(network)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    history = []
    for epoch in range(8):
        train_loss = epoch_of(model, optimizer, *train)
        val_loss, val_acc = evaluate(model, *val)
        test_loss, test_acc = evaluate(model, *test)
        history.append((val_loss, test_loss))
        print(f"epoch {epoch}  train {train_loss:.4f}  val {val_loss:.4f} {val_acc:.3f}  test {test_loss:.4f} {test_acc:.3f}")
    return model, history


if __name__ == "__main__":
    main()
