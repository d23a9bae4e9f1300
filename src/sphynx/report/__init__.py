"""The report that people look at: tables beside the paper's, drawings, plots."""
