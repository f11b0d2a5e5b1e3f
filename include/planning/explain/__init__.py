"""Why a plan does what it does, from its files and its snapshot alone."""
