"""Texture classification with a small CNN; the final weights are the average over the last epochs (SWA)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, SIDE = 6, 16


def textures(n, gen):
    """Oriented gratings; the class is the orientation, while phase, period and contrast vary."""
    label = torch.randint(CLASSES, (n,), generator=gen)
    angle = (label + 0.35 * torch.randn(n, generator=gen)) * torch.pi / CLASSES
    phase = 2 * torch.pi * torch.rand(n, 1, 1, generator=gen)
    period = 4 + 4 * torch.rand(n, 1, 1, generator=gen)
    contrast = 0.4 + torch.rand(n, 1, 1, generator=gen)
    yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    along = xx * angle.cos()[:, None, None] + yy * angle.sin()[:, None, None]
    image = contrast * torch.sin(2 * torch.pi * along / period + phase)
    return (image + 0.6 * torch.randn(image.shape, generator=gen))[:, None], label


def conv_net(width=16):
    def block(c_in, c_out):
        return [nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(*block(1, width), *block(width, 2 * width), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                         nn.Linear(8 * width, CLASSES))


class WeightAverage:
    def __init__(self, model):
        self.model, self.count = model, 0
        self.mean = [torch.zeros_like(p) for p in model.parameters()]

    @torch.no_grad()
    def collect(self):
        self.count += 1
        for m, p in zip(self.mean, self.model.parameters()):
            m += (p - m) / self.count

    @torch.no_grad()
    def apply(self):
        for m, p in zip(self.mean, self.model.parameters()):
            p.copy_(m)


@torch.no_grad()
def recalibrate(model, x, batch_size):
    """The running statistics belong to the last epoch's weights, so measure them again on the training set."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    kept = [m.momentum for m in norms]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None  # cumulative average
    model.train()
    for chunk in x.split(batch_size):
        model(chunk)
    for m, momentum in zip(norms, kept):
        m.momentum = momentum


@torch.no_grad()
def evaluate(model, x, y):
    was_training = model.training
    model.eval()
    logits = model(x)
    model.train(was_training)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main(epochs=10, average_from=5, batch_size=50):
    torch.manual_seed(41)
    gen = torch.Generator().manual_seed(41)
    x, y = textures(1000, gen)
    x_test, y_test = textures(600, gen)
    model = conv_net()
    opt = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9, weight_decay=5e-4)
    average = WeightAverage(model)
    for epoch in range(epochs):
        for group in opt.param_groups:  # constant rate in the averaging phase
            group["lr"] = 0.08 if epoch < average_from else 0.04
        model.train()
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch >= average_from:
            average.collect()
        print("epoch %d  test loss %.3f  accuracy %.3f" % (epoch, *evaluate(model, x_test, y_test)))
    average.apply()
    recalibrate(model, x, batch_size)
    print("average of %d  test loss %.3f  accuracy %.3f" % (average.count, *evaluate(model, x_test, y_test)))
    return model


if __name__ == "__main__":
    main()
