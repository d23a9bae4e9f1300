"""ONNX files, read into operators."""
