import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

fix = [("        self.lookahead.load_state_dict(updated)\n", ""),
       ("F.cross_entropy(self.lookahead(x_val), y_val)", "F.cross_entropy(torch.func.functional_call(self.lookahead, updated, (x_val,)), y_val)")]
w, f = run("bilevel_group_weights"), run("bilevel_group_weights", *fix)
wl, fl = w["trainer"].weights.logits, f["trainer"].weights.logits
print("logits: wrong", wl.tolist(), wl.grad, "fixed", fl.tolist(), "accuracy", w["accuracy"], f["accuracy"])
assert wl.grad is None and wl.abs().max().item() == 0.0
assert fl.grad is not None and fl[0] > fl[3] + 0.5 and f["accuracy"] > w["accuracy"]
