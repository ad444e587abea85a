"""A simulated cluster around the real assigner: begin with `simulated_cluster.py`. Clusters on which policies are
measured: `running_cluster.py`, `aware_figures.py`, `generated_traces.py`.
"""
