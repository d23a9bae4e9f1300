"""ONNX files as walks over affine maps: reading, windows, operators by kind, refusals."""
