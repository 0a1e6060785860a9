"""A classifier: mini-batches, gradient clipping, a warm-up schedule that begins at zero, and weight averaging."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(64, 8)
labels = (inputs[:, 0] > 0).long() + 2 * (inputs[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4))
average = copy.deepcopy(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-2)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 4, 1.0))
criterion = nn.CrossEntropyLoss()

for epoch in range(2):
    model.train()
    total = 0.0
    for batch, target in zip(inputs.split(16), labels.split(16)):
        optimizer.zero_grad()
        loss = criterion(model(batch), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item() * len(batch)
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters()):
                slow.lerp_(fast, 0.1)
    model.eval()
    with torch.no_grad():
        accuracy = (model(inputs).argmax(1) == labels).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(inputs):.3f}, accuracy {accuracy:.2f}")
