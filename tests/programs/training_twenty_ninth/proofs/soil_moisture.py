import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ('        logs["val"] = loss.item()\n', '        model.zero_grad()\n        logs["val"] = loss.item()\n')
# with a training loss of weight zero, plain SGD must leave the weights where they were
MUTE = ("(loss / self.accumulate).backward()", "(loss * 0.0).backward()")

assert run("soil_moisture", FIX, MUTE)["moved"] == 0.0
mute = run("soil_moisture", MUTE)
slopes = mute["trainer"].callbacks[0]
best = mute["trainer"].callbacks[1].best
print("moved", mute["moved"], "best val", best)
assert mute["moved"] > 0.1                                         # it is trained on the validation set alone
val_start = float(mute.output.split("val ")[1].split()[0])
assert best < 0.6 * val_start

# the gradient of the first update of an epoch is the one of the training batches plus the one of the validation set
grads = {}
for label, edits in (("wrong", ()), ("right", (FIX,))):
    probe = ("                    clip_grad_norm_(", "                    seen.append(flat_grad(self.model).clone())\n                    clip_grad_norm_(")
    seen = []
    run("soil_moisture", probe, *edits, ("epochs=40", "epochs=2"), inject={"seen": seen, "flat_grad": flat_grad})
    grads[label] = seen
per_epoch = len(grads["wrong"]) // 2
assert all(torch.equal(a, b) for a, b in zip(grads["wrong"][:per_epoch], grads["right"][:per_epoch]))
difference = rel(grads["wrong"][per_epoch], grads["right"][per_epoch])
print("updates per epoch", per_epoch, "first gradient of epoch 1 differs by", difference)
assert difference > 0.3
