import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

assert run("thaw_schedule_other").output != run("thaw_schedule_other", folder="right").output
