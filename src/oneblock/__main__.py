"""`python -m oneblock` is the command `oneblock`."""

from oneblock.cli.main import main

if __name__ == "__main__":
    main()
