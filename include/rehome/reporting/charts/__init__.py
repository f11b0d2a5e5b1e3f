"""Pictures of the report, as plain numbers for its template to draw."""
