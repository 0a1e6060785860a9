import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("shape_sdf")
good = run("shape_sdf", ("retain_graph=True)", "create_graph=True)"))
print("terms that have a graph:", {k: v.requires_grad for k, v in bad["losses"].items()}, "repaired", {k: v.requires_grad for k, v in good["losses"].items()})
print("normal", bad["losses"]["normal"].item(), good["losses"]["normal"].item())
print("eikonal", bad["losses"]["eikonal"].item(), good["losses"]["eikonal"].item())
print("distance error", bad["error"], good["error"], "agreement", bad["inside"], good["inside"])
assert not bad["losses"]["eikonal"].requires_grad and not bad["losses"]["normal"].requires_grad
assert all(v.requires_grad for v in good["losses"].values())
assert bad["losses"]["normal"] > 0.5 > 0.05 > good["losses"]["normal"]
assert bad["error"] > 3 * good["error"] and good["inside"] > bad["inside"] + 0.1
