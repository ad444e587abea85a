"""Properties that hypothesis tries: `examples.py` says with how many examples."""
