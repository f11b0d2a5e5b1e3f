"""What one snapshot shows to be wrong."""
