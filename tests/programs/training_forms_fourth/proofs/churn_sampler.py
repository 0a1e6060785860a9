import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

assert run("churn_sampler").output != run("churn_sampler", folder="right").output
