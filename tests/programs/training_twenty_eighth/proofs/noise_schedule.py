import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

repair = ("return (weight * error).mean()", "return (weight.squeeze(1) * error).mean()")
plain = ("return (weight * error).mean()", "return error.mean()")


trained = run("noise_schedule")


def gradient(*edits):
    program = run("noise_schedule", *edits, as_main=False)
    torch.manual_seed(0)
    model = program["Diffusion"]()
    model.load_state_dict(trained["model"].state_dict())
    data = program["signals"](2048)
    torch.manual_seed(1)
    model.loss(data).backward()
    return flat_grad(model)


def cosine(a, b):
    return torch.cosine_similarity(a, b, dim=0).item()


shape = run("noise_schedule", ("return (weight * error).mean()", "product = weight * error; return product.mean()"), ("steps=400", "steps=2"), capture=("loss",))
print("shape of the weighted error", tuple(shape.locals["loss"]["product"].shape))
assert shape.locals["loss"]["product"].shape == (192, 192)
written, weighted, unweighted = gradient(), gradient(repair), gradient(plain)
print("written/unweighted", cosine(written, unweighted), " written/weighted", cosine(written, weighted))
assert cosine(written, unweighted) > 0.999  # the weighting only scales the unweighted gradient
assert cosine(written, weighted) < 0.95 and rel(written, weighted) > 0.1
far, near = trained["distance"], run("noise_schedule", repair)["distance"]
print("samples: distance as written", far, "repaired", near)
assert far > 1.2 * near
