"""Prompt templates, one per role and task, and the format of a reply."""
