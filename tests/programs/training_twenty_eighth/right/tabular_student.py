"""Distillation with a reused teacher classifier (SimKD, Chen et al., 2022) on synthetic tabular data."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, DIM = 8, 30


def make_table(n, generator):
    fixed = torch.Generator().manual_seed(60)
    w1, w2 = torch.randn(DIM, 24, generator=fixed) / DIM**0.5, torch.randn(24, CLASSES, generator=fixed)
    x = torch.randn(n, DIM, generator=generator)
    logits = torch.tanh(2 * x @ w1) @ w2
    return x, (logits + 0.3 * torch.randn(n, CLASSES, generator=generator)).argmax(dim=1)


class TableNet(nn.Module):
    def __init__(self, width, features):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(DIM, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(inplace=True), nn.Dropout(0.1),
            nn.Linear(width, features, bias=False), nn.BatchNorm1d(features), nn.ReLU(inplace=True))
        self.classifier = nn.Linear(features, CLASSES)

    def forward(self, x):
        return self.classifier(self.body(x))


class SimKD(nn.Module):
    """The student's features are projected into the teacher's feature space and read by the teacher's classifier."""

    def __init__(self, teacher, student):
        super().__init__()
        self.teacher = teacher.requires_grad_(False)
        self.student_body = student.body
        student_features, teacher_features = student.classifier.in_features, teacher.classifier.in_features
        self.projector = nn.Sequential(nn.Linear(student_features, teacher_features, bias=False),
                                       nn.BatchNorm1d(teacher_features), nn.ReLU(inplace=True))
        self.classifier = copy.deepcopy(teacher.classifier)
        self._tapped = None
        self.teacher.body.register_forward_hook(self._tap)

    def _tap(self, module, args, output):
        self._tapped = output

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def teacher_outputs(self, x):
        with torch.inference_mode():
            logits = self.teacher(x)
        features, self._tapped = self._tapped, None
        return features.clone(), logits.clone()

    def forward(self, x):
        features = self.projector(self.student_body(x))
        return features, self.classifier(features)

    def loss(self, x, temperature=3.0, soft=0.1):
        goal, teacher_logits = self.teacher_outputs(x)
        features, logits = self(x)
        match = F.mse_loss(features, goal)
        kl = F.kl_div(F.log_softmax(logits / temperature, dim=1), F.softmax(teacher_logits / temperature, dim=1),
                      reduction="batchmean") * temperature**2
        return match + soft * kl, match.detach(), kl.detach()


@torch.no_grad()
def accuracy(logits_of, x, y):
    return (logits_of(x).argmax(dim=1) == y).float().mean().item()


def train_teacher(x, y, steps=150):
    net = TableNet(width=96, features=48)
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (128,))
        loss = F.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net.eval()


def main(steps=180):
    torch.manual_seed(17)
    x, y = make_table(2000, torch.Generator().manual_seed(1))
    x_test, y_test = make_table(800, torch.Generator().manual_seed(2))
    teacher = train_teacher(x, y)
    print(f"teacher accuracy {accuracy(teacher, x_test, y_test):.3f}")
    model = SimKD(teacher, TableNet(width=24, features=16))
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)
    for step in range(steps):
        model.train()
        rows = torch.randint(0, len(x), (128,))
        loss, match, kl = model.loss(x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 45 == 0 or step == steps - 1:
            model.eval()
            score = accuracy(lambda v: model(v)[1], x_test, y_test)
            print(f"step {step:3d}  match {match.item():.4f}  kl {kl.item():.4f}  student accuracy {score:.3f}")
    return model


if __name__ == "__main__":
    model = main()
