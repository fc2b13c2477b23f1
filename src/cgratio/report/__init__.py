"""The PDF report: pages drawn from an analysis and its results. It reads, and never measures."""
