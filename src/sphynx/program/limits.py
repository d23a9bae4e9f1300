"""How large inputs of programs may be. Without numpy: the help of verbs names these, and loads in an instant."""

MIN_PICTURE_PART = 0.5  # a client makes the whole picture that large before it cuts
PIXEL_BITS, MAX_INPUT_BITS = 8, 16
LARGEST_NUMBER = 1e30  # of either sign, so that differences are finite in every precision
MAX_AXES = 8
