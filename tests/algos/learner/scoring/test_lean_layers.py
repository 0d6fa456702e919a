"""Quicker forms of layers: the same function, checked against the model's own code."""

import pytest
import torch

from turngym.agents.models.random_init import random_model
from turngym.algos.learner.scoring.lean_layers import LeanLayers, rms_norm
