"""The handbook: docs/ as a site, its generated pages, its pictures."""
