"""`python -m voile`: the same program, where no script of that name is on the path."""

from voile.cli import main

if __name__ == "__main__":
    main()
