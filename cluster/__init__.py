"""How to get a Dask client: local, an address, SLURM. Knows nothing of simulations."""
