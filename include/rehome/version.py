"""The version of Rehome: the one place that the package, the page and the command line read."""

REHOME_VERSION = "0.1.0"
