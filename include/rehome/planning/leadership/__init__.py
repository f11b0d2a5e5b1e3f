"""Preferred leaders, chosen by the order of replicas. Nothing is copied, but for min_leaders."""
