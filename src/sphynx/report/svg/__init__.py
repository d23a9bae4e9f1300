"""Charts without a plotting library: shapes, axes, marks, bars, spans and the skeleton of a network, as SVG or PNG."""
