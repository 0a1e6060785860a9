import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import flat_grad, rel, run
import torch
import torch.nn.functional as F

NAME = "periodic_forecaster"
fix = ("stream += self.project", "stream = stream + self.project")
copied = ("ctx.x = x.detach()", "ctx.x = x.detach().clone()")
plain = ("return SnakeFunction.apply(x, self.a)", "return x + torch.sin(self.a * x).square() / self.a")
few = ("steps, batch = 300, 64", "steps, batch = 3, 64")


def first_gradient(*edits):
    g = run(NAME, few, *edits)
    torch.manual_seed(0)
    model = g["Forecaster"]()
    loss = F.mse_loss(model(g["past"][:64]), g["future"][:64])
    loss.backward()
    return loss.item(), flat_grad(model), model.blocks[0].enter.a.grad


wrong, right, clone = first_gradient(), first_gradient(fix), first_gradient(copied)
truth = first_gradient(fix, plain)
assert abs(wrong[0] - truth[0]) < 1e-6, "the forward pass is the same"
print("relative errors of the gradient", rel(wrong[1], truth[1]), rel(right[1], truth[1]), rel(clone[1], truth[1]))
print("of the first block's frequency", rel(wrong[2], truth[2]))
assert rel(right[1], truth[1]) < 1e-4 and rel(clone[1], truth[1]) < 1e-4
assert rel(wrong[1], truth[1]) > 0.05 and rel(wrong[2], truth[2]) > 0.2
ends = []
for edits in ((), (fix,)):
    g = run(NAME, *edits)
    ends.append(g["evaluate"](g["model"], g["test_past"], g["test_future"]))
print("test errors", ends)
assert ends[1] < 0.95 * ends[0]
