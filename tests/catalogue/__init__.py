"""What autograd can say to a script, and what it does not say: small scripts that bring each about by its different
mechanisms, and how many of them the lens explains down to the marked lines. `python -m catalogue` scores them all.
"""
