"""Small starting models by imitation of scripted experts."""
