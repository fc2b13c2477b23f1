"""What is asked, the order in which it is measured, and the run that never loses a finished trial."""
