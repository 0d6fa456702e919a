"""DRRN: a small network that scores each legal action (He et al. 2016), trained by Q-learning."""
