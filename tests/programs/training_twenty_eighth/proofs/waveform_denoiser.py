import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

OLD = '''    with torch.autocast("cpu", dtype=torch.bfloat16):
        for noisy, clean in batches(*data, generator):
            optimizer.zero_grad(set_to_none=True)
            restored = model(noisy)
            loss'''
NEW = '''    if True:
        for noisy, clean in batches(*data, generator):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                restored = model(noisy)
            loss'''
LOOK = ("            total += loss.item()", '''            with torch.no_grad():
                inside = model(noisy).float()
                with torch.autocast("cpu", enabled=False):
                    outside = model(noisy)
            GAPS.append(((inside - outside).norm() / outside.norm()).item())
            total += loss.item()''')
FRESH = ("                inside = model(noisy)", "                with torch.autocast('cpu', dtype=torch.bfloat16):\n                    inside = model(noisy)")

wrong = run("waveform_denoiser")
right = run("waveform_denoiser", (OLD, NEW))
print(wrong["history"][-1], right["history"][-1])
assert right["history"][-1][1] < 0.6 * wrong["history"][-1][1]

# within an epoch the net computes with the weights of the epoch's first step
gaps = []
run("waveform_denoiser", LOOK, inject={"GAPS": gaps})
good = []
run("waveform_denoiser", (OLD, NEW), LOOK, FRESH, inject={"GAPS": good})
print(max(gaps[:40]), max(good[:40]))
assert max(gaps[:40]) > 0.3 and max(good) < 0.05
