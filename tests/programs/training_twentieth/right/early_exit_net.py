"""An image classifier with early exits that teaches itself: the deepest exit guides the shallow ones."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)

SIDE, CLASSES, TEMPERATURE = 12, 6, 3.0


def textures(n, generator):
    label = torch.randint(0, CLASSES, (n,), generator=generator)
    angle = label.float() * torch.pi / CLASSES + 0.12 * torch.randn(n, generator=generator)
    frequency = 1.4 + 0.3 * torch.rand(n, generator=generator)
    phase = 6.3 * torch.rand(n, generator=generator)
    yy, xx = torch.meshgrid(torch.arange(SIDE).float(), torch.arange(SIDE).float(), indexing="ij")
    direction = angle.cos().view(-1, 1, 1) * xx + angle.sin().view(-1, 1, 1) * yy
    image = torch.sin(frequency.view(-1, 1, 1) * direction + phase.view(-1, 1, 1))
    return (image + 0.9 * torch.randn(n, SIDE, SIDE, generator=generator)).unsqueeze(1), label


def block(inp, out, stride):
    return nn.Sequential(nn.Conv2d(inp, out, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())


class ExitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([block(1, 12, 1), block(12, 24, 2), block(24, 32, 2)])
        self.exits = nn.ModuleList([nn.Linear(c, CLASSES) for c in (12, 24, 32)])

    def forward(self, x):
        logits = []
        for stage, exit_ in zip(self.stages, self.exits):
            x = stage(x)
            logits.append(exit_(x.mean(dim=(2, 3))))
        return logits

    @torch.no_grad()
    def predict(self, x, threshold):
        """Each image leaves at the first exit that is sure enough."""
        answer = torch.full((len(x),), -1)
        taken = torch.zeros(len(x), dtype=torch.long)
        remaining = torch.arange(len(x))
        for depth, (stage, exit_) in enumerate(zip(self.stages, self.exits)):
            x = stage(x)
            confidence, guess = exit_(x.mean(dim=(2, 3))).softmax(-1).max(-1)
            leave = confidence > threshold
            if depth == len(self.stages) - 1:
                leave = torch.ones_like(leave)
            answer[remaining[leave]] = guess[leave]
            taken[remaining[leave]] = depth
            remaining, x = remaining[~leave], x[~leave]
            if len(remaining) == 0:
                break
        return answer, taken


def loss_of(logits, label, soft_weight):
    hard = sum(F.cross_entropy(z, label) for z in logits)
    # The guide is a target, it must not come towards the weaker exits.
    guide = (logits[-1].detach() / TEMPERATURE).softmax(-1)
    soft = sum(F.kl_div((z / TEMPERATURE).log_softmax(-1), guide, reduction="batchmean") for z in logits[:-1])
    return hard + soft_weight * TEMPERATURE**2 * soft


def main():
    g = torch.Generator().manual_seed(12)
    image, label = textures(1200, g)
    test_image, test_label = textures(600, g)
    model = ExitNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    epochs = 7
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=epochs, steps_per_epoch=20)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(label)).split(60):
            loss = loss_of(model(image[idx]), label[idx], soft_weight=0.3 * epoch / (epochs - 1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            accuracy = [(z.argmax(1) == test_label).float().mean().item() for z in model(test_image)]
        print(f"epoch {epoch}  loss {total / len(label):.4f}  exits " + " ".join(f"{a:.3f}" for a in accuracy))
    for threshold in (0.6, 0.8, 0.95):
        answer, taken = model.predict(test_image, threshold)
        share = torch.bincount(taken, minlength=3) / len(taken)
        print(f"threshold {threshold}: accuracy {(answer == test_label).float().mean().item():.3f}  exits {share.tolist()}")


if __name__ == "__main__":
    main()
