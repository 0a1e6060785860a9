"""Transfer learning for fruit grading: probe a frozen backbone on cached features, then fine-tune its last block."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)

SIGNALS = 16
SOURCE_CLASSES = 6
GRADES = 3


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return x + F.relu(self.norm(self.linear(x)))


class Backbone(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Linear(SIGNALS, width)
        self.block1 = Block(width)
        self.block2 = Block(width)
        self.frozen = False

    def freeze(self):
        self.frozen = True
        self.requires_grad_(False)
        return self.eval()

    def train(self, mode=True):
        return super().train(mode and not self.frozen)

    def lower(self, x):
        return self.block1(F.relu(self.stem(x)))

    def forward(self, x):
        return self.block2(self.lower(x))


def make_domain(classes, size, mixing):
    centers = 1.3 * torch.randn(classes, SIGNALS)
    y = torch.randint(0, classes, (size,))
    return torch.tanh((centers[y] + torch.randn(size, SIGNALS)) @ mixing), y


def loop(step, inputs, y, epochs, batch=40):
    total = 0.0
    for _ in range(epochs):
        total = 0.0
        for index in torch.randperm(len(y)).split(batch):
            total += step(inputs[index], y[index]) * len(index)
    return total / len(y)


def make_step(forward, optimizer):
    def step(x, y):
        loss = F.cross_entropy(forward(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def main():
    mixing = torch.randn(SIGNALS, SIGNALS) / SIGNALS ** 0.5
    xs, ys = make_domain(SOURCE_CLASSES, 900, mixing)
    xt, yt = make_domain(GRADES, 300, mixing)
    xt, x_test, yt, y_test = xt[:160], xt[160:], yt[:160], yt[160:]

    backbone, source_head = Backbone(), nn.Linear(32, SOURCE_CLASSES)
    pretrain = torch.optim.Adam([*backbone.parameters(), *source_head.parameters()], lr=3e-3)
    loss = loop(make_step(lambda x: source_head(backbone(x)), pretrain), xs, ys, epochs=8)
    print(f"source loss {loss:.3f}")

    backbone.freeze()
    head = nn.Linear(32, GRADES)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    model = nn.Sequential(backbone, head)
    model.train()

    with torch.no_grad():
        features = backbone(xt)
        lower = backbone.lower(xt)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
    loss = loop(make_step(head, optimizer), features, yt, epochs=15)
    print(f"probe loss {loss:.3f}, first loss was {torch.tensor(float(GRADES)).log().item():.3f}")

    top = backbone.block2
    before = {name: p.detach().clone() for name, p in top.named_parameters()}
    running = top.norm.running_mean.clone()
    top.requires_grad_(True)
    optimizer.param_groups[0]["lr"] = 2e-3
    optimizer.add_param_group({"params": top.parameters(), "lr": 5e-4})
    loss = loop(make_step(lambda h: head(top(h)), optimizer), lower, yt, epochs=15)

    model.eval()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(dim=1) == y_test).float().mean().item()
    moved = {name: round((p.detach() - before[name]).norm().item(), 4) for name, p in top.named_parameters()}
    print(f"fine-tuned loss {loss:.3f}, test accuracy {accuracy:.3f}")
    print("movement of the last block:", moved)
    print("statistics of the backbone unchanged:", torch.equal(running, top.norm.running_mean))
    return model, optimizer, moved, accuracy


if __name__ == "__main__":
    model, optimizer, moved, accuracy = main()
