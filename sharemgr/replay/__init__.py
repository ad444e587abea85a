"""Experiments that others published, replayed in simulated time through the policies of the cluster part.

`engines.py` has the pods, `world.py` what a card does with them, `admissions.py` who lets them in, `lent.py` the
lending policies as one of those, `simulation.py` runs them, `experiment.py` all settings of it. What a pod truly needs
is known here alone: the policies cannot import this package."""
