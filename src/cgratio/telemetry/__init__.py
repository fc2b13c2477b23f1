"""Sensors, the sampler process that reads them, and the joules that follow from the readings."""
