import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "review_sentiment"

was = run(NAME, capture=["main", "train"]).locals
block = was["main"]["model"].blocks[0].attn
assert not block.query.lora_a.requires_grad and not block.value.lora_b.requires_grad
assert block.query.lora_b.abs().sum() == 0 and not in_optimizer(block.query.lora_a, was["train"]["optimizer"])
edit = ("        param.requires_grad = False\n", "        param.requires_grad = False\n    add_lora(model, rank)\n")
now = run(NAME, ("    add_lora(model, rank)\n    for", "    for"), edit, capture=["main", "train"]).locals
block = now["main"]["model"].blocks[0].attn
assert block.query.lora_b.abs().sum() > 0 and in_optimizer(block.query.lora_a, now["train"]["optimizer"])

print(f"proved: {NAME}")
