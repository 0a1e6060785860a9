import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

fix = (("        self.optimizer.zero_grad()\n", ""), ("        loss.backward()\n", "        self.optimizer.zero_grad()\n        loss.backward()\n"))


def one_step(*edits):
    program = run("energy_sampler", *edits, as_main=False)
    torch.manual_seed(0)
    trainer = program["Trainer"](lr=0.0)
    seen, net = [], trainer.net
    handle = net.register_forward_pre_hook(lambda m, a: seen.append(a[0].detach().clone()))
    trainer.step(program["spirals"](128, torch.Generator().manual_seed(2)))
    handle.remove()
    real, fake = seen[-2:]
    loss = net(real).mean() - net(fake).mean() + trainer.reg * (net(real).pow(2).mean() + net(fake).pow(2).mean())
    formula = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(net.parameters()))])
    return flat_grad(net), formula


used, formula = one_step()
print("as written", rel(used, formula), torch.cosine_similarity(used, formula, dim=0).item())
assert rel(used, formula) > 10
used, formula = one_step(*fix)
print("repaired", rel(used, formula))
assert rel(used, formula) < 1e-4
wrong, good = run("energy_sampler"), run("energy_sampler", *fix)
print(wrong["final"], good["final"])
assert good["final"] > wrong["final"] + 0.3
