"""Take a trained network down to a budget of ReLUs: the frame (`reduction`), a method's `task`, the methods."""
