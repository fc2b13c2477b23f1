"""The stored results of a sweep: the Parquet schema and the folder that holds it."""
