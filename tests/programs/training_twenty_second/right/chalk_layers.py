"""Homework 1: derive the gradients on the blackboard, then train with them (autograd only checks them elsewhere)."""
import torch


def moons(n, gen, noise=0.15):
    angle = torch.rand(n, generator=gen) * torch.pi
    label = torch.randint(0, 3, (n,), generator=gen)
    x = torch.stack([angle.cos(), angle.sin()], 1)
    x[label == 1] = torch.tensor([1.0, 0.4]) - x[label == 1]
    x[label == 2] = x[label == 2] * 0.5 + torch.tensor([0.5, 1.2])
    return x + noise * torch.randn(n, 2, generator=gen), label


class Layer:
    params = ()

    def __call__(self, x):
        return self.forward(x)


class Dense(Layer):
    def __init__(self, n_in, n_out, gen):
        self.w = torch.nn.Parameter(torch.randn(n_in, n_out, generator=gen) * (2.0 / n_in) ** 0.5)
        self.b = torch.nn.Parameter(torch.zeros(n_out))
        self.params = (self.w, self.b)

    def forward(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward(self, dout):
        self.w.grad = self.x.t() @ dout
        self.b.grad = dout.sum(0)
        return dout @ self.w.t()


class LeakyReLU(Layer):
    def forward(self, x):
        self.slope = torch.where(x > 0, 1.0, 0.1)
        return x * self.slope

    def backward(self, dout):
        return dout * self.slope


class SoftmaxCrossEntropy:
    def forward(self, logits, target):
        self.prob, self.target = logits.softmax(1), target
        return -self.prob[torch.arange(len(target)), target].log().mean()

    def backward(self):
        d = self.prob.clone()
        d[torch.arange(len(d)), self.target] -= 1.0
        return d / len(d)


class Network:
    def __init__(self, sizes, gen):
        self.layers = []
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            self.layers.append(Dense(a, b, gen))
            if i < len(sizes) - 2:
                self.layers.append(LeakyReLU())

    def parameters(self):
        return [p for layer in self.layers for p in layer.params]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def backward(self, dout):
        for layer in reversed(self.layers):
            dout = layer.backward(dout)


@torch.no_grad()
def train(steps=600, batch=64):
    gen = torch.Generator().manual_seed(12)
    x, y = moons(1500, gen)
    x_test, y_test = moons(500, gen)
    net, criterion = Network([2, 32, 32, 3], gen), SoftmaxCrossEntropy()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    for step in range(steps):
        idx = torch.randint(len(x), (batch,), generator=gen)
        loss = criterion.forward(net.forward(x[idx]), y[idx])
        net.backward(criterion.backward())
        optimizer.step()
        if step % 150 == 0 or step == steps - 1:
            acc = (net.forward(x_test).argmax(1) == y_test).float().mean().item()
            print(f"step {step:4d}  loss {loss.item():.4f}  test acc {acc:.3f}")
    return net


if __name__ == "__main__":
    train()
