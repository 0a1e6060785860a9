import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

wrong = run("dock_cql")
right = run("dock_cql",
            ("zip(self.q_target.parameters(), self.q.parameters())", "list(zip(self.q_target.parameters(), self.q.parameters()))"))
one = run("dock_cql", ("STEPS, BATCH = 1100", "STEPS, BATCH = 1"))
moved = (flat(wrong["agent"].q_target) - flat(one["agent"].q_target)).abs().max().item()
moved_right = (flat(right["agent"].q_target) - flat(one["agent"].q_target)).abs().max().item()
print("target moved after step 1: wrong", moved, "repaired", moved_right)
print("gap online/target: wrong", rel(flat(wrong["agent"].q_target), flat(wrong["agent"].q)),
      "repaired", rel(flat(right["agent"].q_target), flat(right["agent"].q)))
print("success: wrong", wrong["success"], "repaired", right["success"])
assert moved == 0.0 and moved_right > 0.05
assert right["success"] > wrong["success"] + 0.3
