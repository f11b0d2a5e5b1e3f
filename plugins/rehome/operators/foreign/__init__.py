"""What may be asked of reassignments that other clients have started."""
