"""Records a notebook or an IPython shell, and explains a cell that raises: `%load_ext tensorlens`.

It imports nothing of IPython: `shell.py` says what it needs of a shell.
"""
