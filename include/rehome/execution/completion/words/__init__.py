"""What a plan has come to, in words."""
