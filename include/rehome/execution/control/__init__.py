"""What may be asked of a plan that runs or waits: pause, resume, cancel, roll back."""
