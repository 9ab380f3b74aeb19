"""``python -m thirdmoment`` is the command line."""

from thirdmoment.cli import main

if __name__ == "__main__":
    main()
