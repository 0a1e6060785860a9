"""Scores of a classifier."""

import torch


def per_class(predicted, labels, classes):
    hits = []
    for index in range(classes):
        chosen = labels == index
        hits.append((predicted[chosen] == index).float().mean())
    return torch.stack(hits)


def balanced_score(logits, labels):
    predicted = logits.argmax(dim=-1)  # role: graph_cut_here
    return per_class(predicted, labels, logits.shape[-1]).mean()
