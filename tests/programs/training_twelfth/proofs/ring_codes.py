import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

FIX = ("        # straight-through: the decoder sees codes, the encoder gets its gradient\n"
       "        quantized = z + (quantized - z).detach()\n"
       "        codebook_loss = F.mse_loss(quantized, z.detach())\n"
       "        commit_loss = F.mse_loss(z, quantized.detach())\n",
       "        codebook_loss = F.mse_loss(quantized, z.detach())\n"
       "        commit_loss = F.mse_loss(z, quantized.detach())\n"
       "        quantized = z + (quantized - z).detach()\n")
bad, good = run("ring_codes"), run("ring_codes", FIX)
start = run("ring_codes", ("steps=400", "steps=0"))
moved = [(r["model"].quantizer.codebook.weight - start["model"].quantizer.codebook.weight).abs().max().item() for r in (bad, good)]
print("codebook movement", moved, "test mse", bad["test_mse"], good["test_mse"], "perplexity", bad["perplexity"], good["perplexity"])
assert bad["model"].quantizer.codebook.weight.grad is None and moved[0] == 0.0 and moved[1] > 0.1
assert bad["test_mse"] > 1.1 * good["test_mse"]
