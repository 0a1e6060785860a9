import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ("        nn.utils.clip_grad_norm_", "        self.scaler.unscale_(self.optimizer)\n        nn.utils.clip_grad_norm_")
# what the optimizer sees at each step
spy = ("        self.scaler = torch", "        self.optimizer.register_step_pre_hook(lambda o, a, k: REC.append(sum(p.grad.norm() ** 2 for p in model.parameters()).sqrt().item()))\n        self.scaler = torch")
a, b = [], []
bad, good = run("amp_intents", spy, inject={"REC": a}), run("amp_intents", fix, spy, inject={"REC": b})
print("grad norms", max(a), sum(b) / len(b), "acc", bad["acc"], good["acc"], "moved", bad["moved"], good["moved"])
assert max(a) < 2.0 ** -13 and sum(b) / len(b) > 0.01
assert bad["moved"] < 0.05 * good["moved"] and good["acc"] > bad["acc"] + 0.3
