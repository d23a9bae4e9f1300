"""The cost of a program: bytes and rounds exactly, time by measured rates, on a link; the widths it will need."""
