"""Types of NumPy arrays, and the values that stand for none and for any."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


Rows = npt.NDArray[np.int32]


CellCounts = npt.NDArray[np.int32]
"""A number for each topic on each broker: there are millions of them."""


Mask = npt.NDArray[np.bool_]


Floats = npt.NDArray[np.float64]


NONE = -1
"""No broker: pads rows of partitions with fewer replicas than the widest."""


UNLIMITED = np.iinfo(np.int64).max // 4
"""The size of a disk whose size is unknown; four of them still add up without overflow."""
