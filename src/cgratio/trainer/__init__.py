"""The IMPALA-style trainer: the instrument that every ratio is measured with."""
