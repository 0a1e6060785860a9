import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("film_sessions")
b = run("film_sessions", ("enumerate(films)", "enumerate(films, 1)"), ("NextFilm(len(index), dim", "NextFilm(len(index) + 1, dim"))
film = next(f for f, i in a["index"].items() if i == 0)
assert sum(history.count(film) for history, _ in a["train"]) > 20
row = lambda r: r["model"].table.weight[r["index"][film]]
assert (row(a) == 0).all() and (row(b) != 0).all()
assert all((a["model"].table.weight[i] != 0).all() for i in range(1, len(a["index"])))
print("proved: film_sessions")
