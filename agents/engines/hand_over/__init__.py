"""Handing a learner's weights over to engines in other processes."""
