"""The customer: what somebody wants, how agents are understood, what is answered."""
