"""PointNet with an input transform (Qi et al. 2017): classifies solids that were scanned in slightly turned positions."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

POINTS = 40
STEPS = 60
REGULARISER = 1e-2
NAMES = ["tube", "plate", "cross", "ball"]


def make_scans(count, generator):
    labels = torch.randint(len(NAMES), (count,), generator=generator)
    noise = torch.randn(count, POINTS, 3, generator=generator)
    ball = F.normalize(noise, dim=-1)
    tube = ball * torch.tensor([0.3, 0.3, 1.5])
    plate = ball * torch.tensor([1.2, 1.2, 0.1])
    cross = torch.where((torch.arange(POINTS) % 2 == 0)[:, None], ball * torch.tensor([1.2, 0.2, 0.2]),
                        ball * torch.tensor([0.2, 1.2, 0.2]))
    clouds = torch.stack([tube, plate, cross, ball], 1)[torch.arange(count), labels]
    angle = (torch.rand(count, generator=generator) - 0.5) * math.pi / 2
    zero, one = torch.zeros(count), torch.ones(count)
    turn = torch.stack([angle.cos(), zero, angle.sin(), zero, one, zero, -angle.sin(), zero, angle.cos()], -1)
    clouds = clouds @ turn.view(-1, 3, 3)
    return clouds + 0.05 * torch.randn(clouds.shape, generator=generator), labels


def pointwise(inputs, outputs):
    return nn.Sequential(nn.Conv1d(inputs, outputs, 1, bias=False), nn.BatchNorm1d(outputs), nn.ReLU(inplace=True))


class InputTransform(nn.Module):
    """A 3 x 3 matrix per cloud; the identity for a new network."""

    def __init__(self):
        super().__init__()
        self.local = nn.Sequential(pointwise(3, 24), pointwise(24, 48))
        self.hidden = nn.Sequential(nn.Linear(48, 24), nn.ReLU(inplace=True))
        self.out = nn.Linear(24, 9)
        nn.init.zeros_(self.out.weight)
        self.out.bias.data.copy_(torch.eye(3).flatten())

    def forward(self, clouds):
        return self.out(self.hidden(self.local(clouds).amax(-1))).view(-1, 3, 3)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform = InputTransform()
        self.local = nn.Sequential(pointwise(3, 32), pointwise(32, 64))
        self.head = nn.Sequential(
            nn.Linear(64, 32), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear(32, len(NAMES)),
        )

    def forward(self, clouds):
        clouds = clouds.transpose(1, 2)
        matrix = self.transform(clouds)
        return self.head(self.local(matrix @ clouds).amax(-1)), matrix


def orthogonality(matrix):
    return (matrix @ matrix.transpose(1, 2) - torch.eye(3)).pow(2).sum((1, 2)).mean()


@torch.no_grad()
def evaluate(net, clouds, labels):
    was_training = net.training
    net.eval()
    logits, _ = net(clouds)
    net.train(was_training)
    return (logits.argmax(-1) == labels).float().mean().item()


def main():
    torch.manual_seed(15)
    generator = torch.Generator().manual_seed(70)
    net = PointNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    held_out = make_scans(150, generator)
    for step in range(STEPS):
        clouds, labels = make_scans(24, generator)
        logits, matrix = net(clouds)
        penalty = orthogonality(matrix)
        loss = F.cross_entropy(logits, labels) + REGULARISER * penalty
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == STEPS - 1:
            print(f"step {step + 1:3d}  loss {loss.item():.3f}  distance from orthogonal {penalty.item():.4f}  "
                  f"held-out accuracy {evaluate(net, *held_out):.3f}")
    return net, held_out


if __name__ == "__main__":
    net, held_out = main()
