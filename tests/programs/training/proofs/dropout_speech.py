import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("dropout_speech", capture=["main"]).locals["main"]["model"]
fixed = run(
    "dropout_speech",
    ("        self.model.train()\n", ""),
    ("            loss = self.train_epoch(*train)", "            self.model.train()\n            loss = self.train_epoch(*train)"),
    capture=["main"],
).locals["main"]["model"]
assert wrong.norm.num_batches_tracked.item() == 10, "batch norm saw only the first of six epochs"
assert fixed.norm.num_batches_tracked.item() == 60
assert not torch.allclose(wrong.norm.running_mean, fixed.norm.running_mean, atol=1e-2)
assert not torch.allclose(wrong.fc.weight, fixed.fc.weight, atol=1e-3)
print("proved: dropout_speech")
