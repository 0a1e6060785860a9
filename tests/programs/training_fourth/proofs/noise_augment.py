import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ("wave = self.waves[index]\n", "wave = self.waves[index].clone()\n")
bad, good = run("noise_augment"), run("noise_augment", fix)
similarity = lambda r: torch.nn.functional.cosine_similarity(r["train"].waves, r["original"]).mean().item()
print(similarity(bad), similarity(good), "acc", bad["final"], good["final"], "loss", bad["last_loss"], good["last_loss"])
assert similarity(bad) < 0.6 and torch.equal(good["train"].waves, good["original"])
assert good["final"] > bad["final"] + 0.03
