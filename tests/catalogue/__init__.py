"""Small scripts that cause each error, warning and silent mistake of autograd by its different mechanisms, and the
score of the lens: how many of them it explains down to the marked lines. `make catalogue` scores them all.
"""
