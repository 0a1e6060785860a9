import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad, good = run("segment_memory"), run("segment_memory", ("[:, :MEM])", "[:, -MEM:])"))
print([round(v, 3) for v in bad["scores"]], [round(v, 3) for v in good["scores"]])
# after two segments the memory never changes again, whatever is read
model, stream = bad["model"], bad["make_stories"](8, torch.Generator().manual_seed(0))[0]
memory, states = model.empty_memory(8), []
with torch.no_grad():
    for s in range(stream.shape[1]):
        memory = model(stream[:, s], memory)[1]
        states.append([m.clone() for m in memory])
frozen = all(torch.equal(a, b) for s in states[2:] for a, b in zip(s, states[1]))
print("memory frozen after two segments:", frozen)
assert frozen and min(bad["scores"][4:]) < 0.5 and min(good["scores"]) > 0.9
