"""Stands in for torchvision, of which a peer uses one function.

torchvision from PyPI loads only beside the very build of torch that it was built with, and a peer here uses
cgratio's torch, whatever build that is.
"""
