import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = ("torch.log(value)", "torch.log(torch.where(bought, value, torch.ones_like(value)))")

wrong = run("shopper_value", inject={})
right = run("shopper_value", FIX)


def gradients(program):
    numeric, region, value = (t[:64] for t in program["test"])
    net = program["net"]
    net.zero_grad()
    loss = program["zero_inflated_lognormal"](*net(numeric, region), value)
    loss.backward()
    return loss, flat_grad(net)


loss, grad = gradients(wrong)
assert torch.isfinite(loss) and torch.isnan(grad).any()  # a finite loss with a NaN gradient
loss, grad = gradients(right)
assert torch.isfinite(loss) and torch.isfinite(grad).all()

untouched = run("shopper_value", ("EPOCHS = 12", "EPOCHS = 0"),
                ('buyers = (train', 'losses.append(0.0); buyers = (train'))
assert torch.equal(flat(wrong["net"]), flat(untouched["net"]))  # not one step was made
print(wrong["losses"][0], wrong["losses"][-1], right["losses"][0], right["losses"][-1])
assert abs(wrong["losses"][0] - wrong["losses"][-1]) < 1e-3
assert right["losses"][-1] < 0.6 * wrong["losses"][-1]
