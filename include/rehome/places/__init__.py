"""Where things are kept: the parts of paths, and which URIs may be read and written."""
