import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

assert run("nutmeg_canyon").output != run("nutmeg_canyon", folder="right").output
