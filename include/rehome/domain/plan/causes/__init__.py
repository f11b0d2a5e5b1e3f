"""Why a partition moves: codes with the figures that belong to them, and their sentences."""
