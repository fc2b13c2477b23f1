"""From stored trials to the ratio: pure functions, tables in, facts out."""
