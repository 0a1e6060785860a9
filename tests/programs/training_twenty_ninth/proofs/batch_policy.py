import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("ALPHA / q.abs().mean()\n", "ALPHA / q.abs().mean().detach()\n")
a = run("batch_policy", capture=("main",))
b = run("batch_policy", FIX, capture=("main",))
print(a.output, b.output)
# the gradient of the actor's loss, as written, is that of the cloning term alone
for ns, same in ((a, True), (b, False)):
    learner, batch = ns.locals["main"]["learner"], ns.locals["main"]["batch"]
    keep = (learner.critic(batch[0], learner.actor(batch[0]))[0] > 0).flatten()
    print("values above zero:", keep.float().mean().item())
    assert keep.float().mean() > 0.95
    state, action = batch[0][keep][:256], batch[1][keep][:256]
    params = list(learner.actor.parameters())
    clone = torch.cat([g.flatten() for g in torch.autograd.grad(
        torch.nn.functional.mse_loss(learner.actor(state), action), params)])
    learner.actor_opt = torch.optim.SGD(params, lr=0.0)
    learner.update_actor(state, action)
    print(rel(flat_grad(learner.actor), clone))
    assert (rel(flat_grad(learner.actor), clone) < 1e-3) == same
assert b.locals["main"]["final"] > a.locals["main"]["final"] + 0.3
# without the value term at all the run ends in the same place
c = run("batch_policy", ("loss = -scale * q.mean() + ", "loss = "), capture=("main",))
print(c.output)
assert abs(c.locals["main"]["final"] - a.locals["main"]["final"]) < 0.3 * (b.locals["main"]["final"] - a.locals["main"]["final"])
