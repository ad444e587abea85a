"""What is found on a machine, as ``facts``: a module for each source. They use the inventories, and nothing else of the
labeller.
"""
