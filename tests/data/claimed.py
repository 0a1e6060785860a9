"""Claims of both kinds, checked while something of the checker's doesn't work."""

for value in (1, 2):
    try:
        int("x")
        #: raises ValueError
    except ValueError:
        print("caught", value)
    #: value > 0
print("done")
