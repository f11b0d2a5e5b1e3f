"""What watches while no worker is held."""
