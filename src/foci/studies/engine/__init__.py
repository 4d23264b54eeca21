"""Run the cells of a study: in this process, on Ray, or as a SLURM array."""
