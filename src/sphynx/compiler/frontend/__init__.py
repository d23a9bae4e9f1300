"""How a network gets in: torch modules by tracing, ONNX files; both as walks over affine maps."""
