import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

assert run("movie_factoring").output != run("movie_factoring", folder="right").output
