"""Charts without a plotting library: shapes, axes, marks, bars and spans, as SVG or PNG."""
