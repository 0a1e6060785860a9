"""Validation pass."""
import torch


def accuracy(logits, labels):
    return (logits.argmax(1) == labels).float().mean().item()


def validate(model, loader):
    model.eval()
    with torch.no_grad():
        scores = [accuracy(model(x), y) for x, y in loader]
    return sum(scores) / len(scores)
