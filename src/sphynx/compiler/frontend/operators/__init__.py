"""A network as operators in ONNX's words, whichever file or module it was read from: their meaning, walks, refusals."""
