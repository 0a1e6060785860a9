import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch
bad = run("maml_sine", capture=("main",)).locals["main"]
assert all(torch.equal(a, b) for a, b in zip(bad["initial"], bad["model"].parameters()))
assert all(p.grad is None for p in bad["model"].parameters())
# repaired: second-order MAML with functional_call
good = run(
    "maml_sine",
    ("""        learner = copy.deepcopy(self.model)
        inner_opt = torch.optim.SGD(learner.parameters(), lr=self.inner_lr)
        for _ in range(self.inner_steps):
            inner_opt.zero_grad()
            F.mse_loss(learner(x), y).backward()
            inner_opt.step()
        learner.zero_grad()
        return learner
""", """        fast = dict(self.model.named_parameters())
        call = lambda x: torch.func.functional_call(self.model, fast, (x,))
        for _ in range(self.inner_steps):
            g = torch.autograd.grad(F.mse_loss(call(x), y), list(fast.values()), create_graph=True)
            fast = {k: v - self.inner_lr * d for (k, v), d in zip(fast.items(), g)}
        return lambda x: torch.func.functional_call(self.model, fast, (x,))
"""),
    capture=("main",)).locals["main"]
print("held-out query loss", bad["final"], "repaired", good["final"])
assert good["final"] < 0.8 * bad["final"]
