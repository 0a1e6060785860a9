import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

assert run("pendulum_agent_other").output != run("pendulum_agent_other", folder="right").output
