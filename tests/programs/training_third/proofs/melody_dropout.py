import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("        torch.manual_seed(self.seed)\n        return model.continue_from(self.opening, self.length)", "        with torch.random.fork_rng():\n            torch.manual_seed(self.seed)\n            return model.continue_from(self.opening, self.length)")
short = ("steps=40", "steps=1"), ("(0, 19, 39)", "(0,)")
idle = []
for edits in ((), (fix,)):
    early, late = run("melody_dropout", *edits, *short)["model"], run("melody_dropout", *edits)["model"]
    idle.append(int((early.out.weight == late.out.weight).all(0).sum()))
    print_rows = int((early.fc.weight == late.fc.weight).all(1).sum())
    assert print_rows == idle[-1]
assert idle[0] > 16 and idle[1] == 0, idle
print("proved: melody_dropout")
