"""One run in several processes, started by torchrun or accelerate.

Every process runs the same program. Each plays its share of a step's groups, then all hold the
whole forest, so that credit rules and trackers see what one process would see. Each computes its
share of every mini batch; FSDP2 adds the gradients up. Only the first process writes.
"""
