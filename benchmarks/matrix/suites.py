"""x"""
from .suite import *
SUITES={}
