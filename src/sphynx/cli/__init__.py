"""The command line: one thin file per verb. Parse, call, print; heavy imports inside the functions."""
