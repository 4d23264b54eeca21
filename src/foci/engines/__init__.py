"""Where work is done: in this process, in others on this machine, on a Ray cluster, under SLURM.

Audits hand in shards of slides, studies their cells. A task is done once its result exists under
its key, so that every engine can be stopped at any moment and another one can resume.
"""
