"""What ended or refused a run: typed, with what a person is to do."""
