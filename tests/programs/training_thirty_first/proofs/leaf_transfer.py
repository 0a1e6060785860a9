import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = (", strict=True, assign=True)", ", strict=True)")
wrong = run("leaf_transfer")
right = run("leaf_transfer", FIX)
print(wrong["test_accuracy"], right["test_accuracy"], sum(wrong["losses"][-50:]) / 50, sum(right["losses"][-50:]) / 50)
for result, trains in ((wrong, False), (right, True)):
    trainer = result["trainer"]
    for name, p in trainer.model.backbone.named_parameters():
        assert p.requires_grad and p.grad is not None and p.grad.abs().max() > 0
        assert in_optimizer(p, trainer.optimizer) == trains
        assert torch.equal(p.detach(), result["pretrained"][name]) == (not trains)
    assert all(in_optimizer(p, trainer.optimizer) for p in trainer.model.head.parameters())
assert sum(right["losses"][-50:]) < 0.7 * sum(wrong["losses"][-50:])
assert right["test_accuracy"] > wrong["test_accuracy"] + 0.05
