import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

clean = run("noise_augment", ("epochs=15", "epochs=0"))["x_train"]
dirty = run("noise_augment")["x_train"]
assert abs((dirty - clean).std().item() - 0.2 * 15**0.5) < 0.02, "the noise of all epochs has added up in the data"
fixed = run("noise_augment", ("batch.add_(strength * torch.randn_like(batch))", "batch = batch + strength * torch.randn_like(batch)"))["x_train"]
assert torch.equal(fixed, clean)
print("proved: noise_augment")
