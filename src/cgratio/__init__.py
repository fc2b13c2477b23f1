"""How many CPU threads a reinforcement-learning job needs for each GPU, by measurement."""

__version__ = "0.1.0"
