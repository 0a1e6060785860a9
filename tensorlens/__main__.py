"""`python -m tensorlens`."""

from tensorlens.cli import main

if __name__ == "__main__":
    main()
