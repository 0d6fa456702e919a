"""The rollout viewer: one HTML page with turns, masks, credit and trees."""
