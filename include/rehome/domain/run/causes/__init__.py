"""What ended, refused or holds up a run: typed."""
