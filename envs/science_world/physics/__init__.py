"""What happens of itself every tick: heat, fire, electricity, water, life."""
