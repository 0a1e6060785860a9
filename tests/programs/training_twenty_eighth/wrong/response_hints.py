"""Feature distillation before the activations (as in Heo et al., 2019) from a wide to a narrow classifier."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, DIM = 10, 32


def make_data(n, generator):
    centres = torch.randn(3 * CLASSES, DIM, generator=torch.Generator().manual_seed(40)) * 0.9
    which = torch.randint(0, 3 * CLASSES, (n,), generator=generator)
    x = centres[which] + torch.randn(n, DIM, generator=generator)
    return x, which % CLASSES


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.norm = nn.BatchNorm1d(outputs)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.norm(self.linear(x)))


class Classifier(nn.Module):
    def __init__(self, width, depth=2):
        super().__init__()
        sizes = [DIM] + [width] * depth
        self.blocks = nn.ModuleList(Block(a, b) for a, b in zip(sizes, sizes[1:]))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class PreActivations:
    """Collects what the normalisation layers of a network put out, in order, during one forward pass."""

    def __init__(self, net):
        self.outputs = []
        self.handles = [block.norm.register_forward_hook(self._collect) for block in net.blocks]

    def _collect(self, module, args, output):
        self.outputs.append(output)

    def pop(self):
        outputs, self.outputs = self.outputs, []
        return outputs

    def close(self):
        for handle in self.handles:
            handle.remove()


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        result = (net(x).argmax(1) == y).float().mean().item()
    net.train()
    return result


def train_teacher(x, y, steps=120):
    net = Classifier(width=96)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (128,))
        loss = F.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net.eval().requires_grad_(False)


def distil(teacher, student, x, y, steps=250, weight=1.0):
    """Pre-activations carry the sign and the size of negative responses, so both halves are matched."""
    taps_t, taps_s = PreActivations(teacher), PreActivations(student)
    connectors = nn.ModuleList(nn.Linear(b.linear.out_features, a.linear.out_features)
                               for a, b in zip(teacher.blocks, student.blocks))
    optimizer = torch.optim.Adam([*student.parameters(), *connectors.parameters()], lr=3e-3)
    for step in range(steps):
        rows = torch.randint(0, len(x), (128,))
        with torch.no_grad():
            teacher(x[rows])
        logits = student(x[rows])
        hint = sum(F.mse_loss(connect(s), t) for connect, s, t in zip(connectors, taps_s.pop(), taps_t.pop()))
        task = F.cross_entropy(logits, y[rows])
        loss = task + weight * hint
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step:3d}  task {task.item():.4f}  pre-activation hint {hint.item():.4f}")
    taps_t.close()
    taps_s.close()
    return connectors


if __name__ == "__main__":
    torch.manual_seed(21)
    x, y = make_data(1500, torch.Generator().manual_seed(1))
    x_test, y_test = make_data(1000, torch.Generator().manual_seed(2))
    teacher = train_teacher(x, y)
    print(f"teacher accuracy {accuracy(teacher, x_test, y_test):.3f}")
    student = Classifier(width=24)
    connectors = distil(teacher, student, x, y)
    print(f"student accuracy {accuracy(student, x_test, y_test):.3f}")
