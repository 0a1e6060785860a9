import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

torch.set_num_threads(1)
wrong = run("caesar_encoder")
fixed = run("caesar_encoder",
            ("x.view(x.size(0), self.heads, -1, self.head_dim)", "x.view(x.size(0), -1, self.heads, self.head_dim).transpose(1, 2)"),
            ("x.reshape(x.size(0), -1, self.heads * self.head_dim)", "x.transpose(1, 2).reshape(x.size(0), -1, self.heads * self.head_dim)"))


def influence(result):
    """Which positions' outputs change when only the key (position 0) changes."""
    tokens, _ = result["sample_lines"](8, torch.Generator().manual_seed(0))
    other = tokens.clone()
    other[:, 0] = result["KEY_OFFSET"] + (other[:, 0] - result["KEY_OFFSET"] + 1) % result["LETTERS"]
    with torch.no_grad():
        return (result["model"](tokens) - result["model"](other)).abs().amax((0, 2)) > 1e-6


print(influence(wrong).int().tolist(), influence(fixed).int().tolist())
print("dev accuracy", wrong["accuracy"], "->", fixed["accuracy"])
assert influence(wrong)[:4].all() and not influence(wrong)[4:].any() and influence(fixed).all()
assert fixed["accuracy"] > wrong["accuracy"] + 0.3
