import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("pulse_ddpm")
good = run("pulse_ddpm", ("keep = self.alpha_bar[t]", "keep = self.alpha_bar[t].unsqueeze(1)"))
t = torch.arange(64).clamp(max=59)
row = {k: r["Schedule"](60).add_noise(torch.ones(64, 64), t, torch.zeros(64, 64)) for k, r in (("bad", bad), ("good", good))}
print("signal kept, spread between rows / within a row:", {k: (v.std(0).mean().item(), v.std(1).mean().item()) for k, v in row.items()})
print("roughness", bad["final_roughness"], good["final_roughness"], "error", bad["final_error"], good["final_error"])
assert row["bad"].std(0).max() < 1e-6 and row["good"].std(1).max() < 1e-6
assert abs(bad["final_roughness"] - 1) > 3 * abs(good["final_roughness"] - 1)
assert bad["final_error"] > 1.5 * good["final_error"]
