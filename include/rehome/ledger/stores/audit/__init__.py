"""The audit: decisions with who, from where and when, and their exports."""
