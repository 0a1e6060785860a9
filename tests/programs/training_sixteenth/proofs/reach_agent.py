import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

loc = run("reach_agent", capture=("main",)).locals["main"]
agent = loc["agent"]
print("temperature in the losses", agent.alpha.item(), "learned temperature", agent.log_alpha.exp().item())
assert agent.alpha.item() == 1.0 and agent.log_alpha.exp().item() < 0.1
step = "        self.alpha_opt.step()\n"
fixed = run("reach_agent", (step, step + "        self.alpha = self.log_alpha.detach().exp()\n"), capture=("main",)).locals["main"]
print("as written: entropy", loc["entropy"], "return", loc["behaviour_return"], "greedy", loc["final"])
print("repaired:   entropy", fixed["entropy"], "return", fixed["behaviour_return"], "greedy", fixed["final"])
assert loc["entropy"] > 0.8 and fixed["entropy"] < 0.0
assert fixed["behaviour_return"] > loc["behaviour_return"] + 2
