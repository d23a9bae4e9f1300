"""`python -m sphynx`: the command line, where its script is not on the PATH."""

from sphynx.cli.main import main

main()
