"""What a program costs: bytes and rounds exactly, time by measured rates, on a link; the widths it will need."""
