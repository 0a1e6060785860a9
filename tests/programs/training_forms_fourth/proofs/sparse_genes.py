import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

assert run("sparse_genes").output != run("sparse_genes", folder="right").output
