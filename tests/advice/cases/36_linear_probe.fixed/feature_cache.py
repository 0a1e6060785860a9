"""Precomputes backbone features once."""
import torch


def extract(backbone, images, batch=4):
    backbone.eval()
    features = []
    with torch.no_grad():
        for start in range(0, images.size(0), batch):
            out = backbone(images[start:start + batch])
            features.append(out.flatten(1))
    return features
