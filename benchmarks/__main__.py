"""`python -m benchmarks` is `frugalbench`."""

from benchmarks.cli.app import main

if __name__ == "__main__":
    main()
