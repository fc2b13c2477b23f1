"""What a trial measures: a process that reports its progress as JSON lines."""
