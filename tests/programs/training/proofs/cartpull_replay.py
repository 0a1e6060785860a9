import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("cartpull_replay")
items = wrong["memory"].items
assert len({t[0].data_ptr() for t in items}) == 1 and len(items) > 300
assert all(torch.equal(t[0], t[3]) for t in items)
s, a, r, s2 = wrong["memory"].sample(32)
assert s.std(dim=0).max() == 0, "every stored state is the same one"
fixed = run("cartpull_replay", ("        return self.state\n", "        return self.state.clone()\n"), ("return self.state, reward", "return self.state.clone(), reward"))
assert fixed["memory"].sample(32)[0].std(dim=0).min() > 0.01
print("proved: cartpull_replay")
