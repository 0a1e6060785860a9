"""Saliency map drawn over the de-normalised input."""
import torch
import torch.nn as nn

MEAN, STD = (0.48, 0.45, 0.40), (0.22, 0.22, 0.22)


def normalize(image):
    mean = torch.tensor(MEAN).view(3, 1, 1)
    std = torch.tensor(STD).view(3, 1, 1)
    return (image - mean) / std


def denormalize(batch):
    restored = batch.detach().clone()
    for channel, mean, std in zip(restored[0], MEAN, STD):
        channel.mul_(std).add_(mean)
    return restored.clamp(0, 1)


class Saliency:
    def __init__(self, model):
        self.model = model.eval()

    def explain(self, batch):
        scores = self.model(batch)
        scores[0, scores[0].argmax()].backward()
        return batch.grad.abs().amax(dim=1)


def overlay(batch, heat, alpha=0.5):
    picture = denormalize(batch)
    return (1 - alpha) * picture + alpha * heat / heat.max()


def main():
    torch.manual_seed(38)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
    batch = normalize(torch.rand(3, 8, 8)).unsqueeze(0).requires_grad_(True)
    heat = Saliency(model).explain(batch)
    print(overlay(batch, heat).shape)


if __name__ == "__main__":
    main()
