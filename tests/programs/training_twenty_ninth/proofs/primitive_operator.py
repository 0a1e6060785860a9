import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

fix = ("retain_graph=True)", "create_graph=True)")
as_written = run("primitive_operator")
repaired = run("primitive_operator", fix)

# at one point: the equation term has no path to the net as written, and one after the repair
def equation_term(*edits):
    m = run("primitive_operator", *edits, as_main=False)
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    functions, net = m["InputFunctions"](8, g), m["DeepONet"]()
    y = m["training_points"](8, 5, g)
    return m["equation_residual"](net(functions.sensors(), y), y, functions).pow(2).mean()

# only y (through functions(y)) makes it require a gradient; no parameter of the net is in its graph
def leaves(node, seen):
    if node is None or node in seen:
        return set()
    seen.add(node)
    found = {node.variable} if hasattr(node, "variable") else set()
    for nxt, _ in node.next_functions:
        found |= leaves(nxt, seen)
    return found

params = lambda loss: [v for v in leaves(loss.grad_fn, set()) if isinstance(v, torch.nn.Parameter)]
assert len(params(equation_term())) == 0
assert len(params(equation_term(fix))) > 5

# a run with the term left out altogether ends in the same weights
without = run("primitive_operator", ("loss = 10.0 * label_loss + equation_loss", "loss = 10.0 * label_loss"))
assert torch.equal(flat(as_written["model"]), flat(without["model"]))
print(as_written["log"][-1], repaired["log"][-1], as_written["seen"], repaired["seen"])
assert as_written["log"][-1][1] > 5 * repaired["log"][-1][1]
assert as_written["seen"] > 2 * repaired["seen"]
