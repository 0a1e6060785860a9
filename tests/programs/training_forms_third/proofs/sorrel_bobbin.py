import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

assert run("sorrel_bobbin").output != run("sorrel_bobbin", folder="right").output
